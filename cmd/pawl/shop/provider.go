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
func StartProvider(ctx context.Context) (p *Provider, err error) {
	p = &Provider{Provider: provider.New()}
	p.url, p.stop, err = Listen(ctx, p.Provider)
	return p, err
}

// URL is where it is, such as "http://127.0.0.1:34567".
func (p *Provider) URL() string { return p.url }

// Stop ends it, and cuts off what is under way. Further calls return what the
// first did.
func (p *Provider) Stop() error { return p.stop() }

// Listen serves on a loopback port of its own. ctx bounds only the start. stop cuts
// off what is under way; further calls return what the first did.
func Listen(ctx context.Context, handler http.Handler) (url string, stop func() error, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return "http://" + listener.Addr().String(), sync.OnceValue(func() error {
		err := server.Close() // a request that hangs would be waited for without end
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}), nil
}
