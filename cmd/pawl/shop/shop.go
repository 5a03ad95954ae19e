// Package shop is the example workflows as a program, with a payment provider at which its orders are paid.
package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
)

// Command is [cli.CommandLine] over the example workflows. Its command serve has the flag --payments, which names the payment provider.
func Command() *cobra.Command {
	client := &provider.Client{} // its URL is known when serve runs
	root := cli.CommandLine(order.Workflow(client), fines.Workflow)
	for _, c := range root.Commands() {
		if c.Name() == "serve" {
			payAt(c, client)
		}
	}
	return root
}

// payAt adds the flag to the command, and runs the provider together with it.
func payAt(serve *cobra.Command, client *provider.Client) {
	var named string
	serve.Flags().StringVar(&named, "payments", os.Getenv("PAWL_PAYMENTS"),
		"URL of the payment provider that all nodes share; default is PAWL_PAYMENTS, or else one in this process, for this node alone")
	serve.Flags().Lookup("payments").DefValue = "" // a help text must not show a password
	run := serve.RunE
	serve.RunE = func(c *cobra.Command, args []string) error {
		if named != "" {
			if err := checkURL(named); err != nil {
				return &pawl.UsageError{Err: fmt.Errorf("--payments: %w", err)}
			}
			client.URL = strings.TrimSuffix(named, "/")
			return run(c, args)
		}
		return withProvider(c, func(p *Provider) error {
			client.URL = p.URL()
			return run(c, args)
		})
	}
}

// withProvider calls do while a payment provider runs, and prints its address.
func withProvider(c *cobra.Command, do func(p *Provider) error) error {
	p, err := StartProvider(c.Context())
	if err != nil {
		return err
	}
	slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil)).Info("payments go to a provider in this process, which forgets them when it ends",
		"url", p.URL())
	return errors.Join(do(p), p.Stop())
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not a URL such as http://127.0.0.1:8090", text)
	}
	return nil
}

// Provider is a payment provider that serves on a loopback port of its own: in
// this process, and yet over real HTTP, as one would be elsewhere.
type Provider struct {
	*provider.Provider
	url  string
	stop func() error
}

// StartProvider serves a provider that knows no charge yet. ctx bounds only the start. Call Stop when done.
func StartProvider(ctx context.Context) (p *Provider, err error) {
	p = &Provider{Provider: provider.New()}
	p.url, p.stop, err = Listen(ctx, p.Provider)
	return p, err
}

// URL is where it is, such as "http://127.0.0.1:34567".
func (p *Provider) URL() string { return p.url }

// Stop ends it, and cuts off what is under way. Further calls return what the first did.
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
