// Package demo tells a story through the real interfaces: orders that are paid
// at a provider, a reservation that runs out and a traffic fine, over HTTP and
// WebSocket, on a real PostgreSQL. Every exchange is printed, and what must hold
// is checked as it is told: a demo that would show something else ends with an
// error.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/shop"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/workflow"
)

// Config says how the story is told.
type Config struct {
	// Database is the connection string of a server where the schema pawl_demo
	// is made anew. "" starts a private server, which ends with the demo.
	Database string

	// Address is where the story takes place and, unless Once is set, where the
	// service stays up after it. "" is pawl.DefaultAddress, or a free port where
	// that is taken or Once is set.
	Address string

	// Data is a folder with the log road_traffic_fines.csv.gz, whose first cases
	// are replayed. "" makes a log up.
	Data string

	// Events is how many events of the log are replayed, about. 0 is
	// DefaultEvents.
	Events int64

	// Once ends the demo after the story.
	Once bool

	// Out takes the story. Color marks it with the colours of a terminal.
	Out   io.Writer
	Color bool
}

// DefaultEvents is a few seconds of the log.
const DefaultEvents = 20_000

// stopTimeout bounds how long the service may take to stop.
const stopTimeout = 20 * time.Second

// Run tells the story. Unless Config.Once is set it then serves until ctx ends.
// Its error says what was not as told, or what could not be started.
func Run(ctx context.Context, c Config) (err error) {
	p := &printer{out: c.Out, color: c.Color}
	p.title("Pawl: one intent, one durable effect, the same answer on every retry")
	st, err := openStage(ctx, c.Database, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	bank, err := shop.StartProvider(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bank.Stop()) }()
	books, err := startBookkeeping(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, books.stop()) }()
	secret := signature.NewSecret()
	service, err := serve(ctx, c, st, bank, books, secret)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err = errors.Join(err, service.Stop(stopping))
	}()
	p.aside("serving at %s, with a payment provider at %s", service.URL(), bank.URL())
	p.aside("> is sent, < is received, = was checked")

	s := &story{printer: p, url: service.URL(), engine: service.Engine(), stage: st, bank: bank, books: books, secret: secret,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}}}
	for _, chapter := range []func(context.Context){
		s.order, s.payment, s.cancellation, s.notice, s.death, s.delivery, s.reservation, s.fine, s.crowd, s.audit,
		func(ctx context.Context) { s.log(ctx, c.Data, cmp.Or(c.Events, DefaultEvents)) },
	} {
		if s.err == nil {
			chapter(ctx)
		}
	}
	s.title("All %d steps were as told", s.steps)
	if c.Once || s.err != nil {
		return s.err
	}
	p.explore(service.URL(), bank.URL(), st.operators())
	return errors.Join(p.err, service.Wait(ctx))
}

// serve starts the service. The usual port may be taken, by a service in real
// use for instance; then another will do, unless this one was asked for.
func serve(ctx context.Context, c Config, st *stage, bank *shop.Provider, books *bookkeeping, secret signature.Secret) (*pawl.Service,
	error) {
	sink, err := books.sink()
	if err != nil {
		return nil, err
	}
	config := pawl.Config{
		Workflows: []workflow.Source{order.Workflow(&provider.Client{URL: bank.URL()}), fines.Workflow, reservations},
		Database:  st.url,
		Schema:    name,
		Address:   c.Address,
		Sinks:     []relay.Sink{sink},
		Inbox:     map[string]pawl.InboxConsumer{order.PaymentNotices: {Secrets: []signature.Secret{secret}}},
		Log:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	host, _, err := net.SplitHostPort(pawl.DefaultAddress)
	if err != nil {
		return nil, fmt.Errorf("the default address: %w", err)
	}
	anyPort := net.JoinHostPort(host, "0")
	if config.Address == "" && c.Once {
		config.Address = anyPort
	}
	service, err := pawl.Start(ctx, config)
	if config.Address == "" && errors.Is(err, syscall.EADDRINUSE) {
		config.Address = anyPort
		service, err = pawl.Start(ctx, config)
	}
	return service, err
}
