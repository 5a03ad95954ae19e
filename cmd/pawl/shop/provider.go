package shop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl/examples/order/provider"
)

// Provider is a payment provider that serves on a loopback port of its own: in
// this process, and yet over real HTTP, as one would be elsewhere.
type Provider struct {
	*provider.Provider
	url  string
	stop func() error
}

// StartProvider serves a provider that knows no charge yet. ctx bounds only the
// start. Call Stop when done.
func StartProvider(ctx context.Context) (*Provider, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for payments: %w", err)
	}
	p := &Provider{Provider: provider.New(), url: "http://" + listener.Addr().String()}
	server := &http.Server{Handler: p.Provider, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	p.stop = sync.OnceValue(func() error {
		err := server.Close() // a request that hangs would be waited for without end
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		if err != nil {
			return fmt.Errorf("serve payments: %w", err)
		}
		return nil
	})
	return p, nil
}

// URL is where it is, such as "http://127.0.0.1:34567".
func (p *Provider) URL() string { return p.url }

// Stop ends it, and cuts off what is under way. Further calls return what the
// first did.
func (p *Provider) Stop() error { return p.stop() }
