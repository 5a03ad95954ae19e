// Package demo tells a story through the real interfaces: orders that are paid at a provider and a traffic fine, over HTTP and WebSocket,
// on a real PostgreSQL. Every exchange is printed, and what must hold is checked as it is told: a demo that would show something else ends
// with an error.
package demo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/cmd/pawl/shop"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/page"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/workflow"
)

// Config configures the demo.
type Config struct {
	// Database is the connection string of a server where the schema pawl_demo
	// is made anew. "" starts a private server, which ends with the demo.
	Database string

	// Address is where the story takes place and, unless Once is set, where the service stays up after it. "" is pawl.DefaultAddress, or a
	// free port where that is taken or Once is set.
	Address string

	// Once ends the demo after the story.
	Once bool

	// Out takes the story. Color marks it with the colours of a terminal.
	Out   io.Writer
	Color bool
}

// stopTimeout bounds how long the service may take to stop.
const stopTimeout = 20 * time.Second

// Run tells the story. Unless Config.Once is set it then serves until ctx ends.
// Its error says what was not as told, or what could not be started.
func Run(ctx context.Context, c Config) (err error) {
	p := &printer{out: c.Out, color: c.Color}
	p.title("Pawl: one intent, one durable effect, the same answer on every retry")
	s := &story{printer: p, secret: signature.NewSecret(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}}}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx, c); err != nil {
		return err
	}
	p.aside("serving at %s, with a payment provider at %s", s.url, s.bank.URL())
	p.aside("> is sent, < is received, = was checked")
	for _, chapter := range []func(context.Context){
		s.order, s.payment, s.cancellation, s.notice, s.fine, s.newVersion, s.crowd, s.death, s.delivery, s.access, s.audit,
	} {
		if s.err == nil {
			chapter(ctx)
		}
	}
	s.title("All %d steps were as told", s.steps)
	if c.Once || s.err != nil {
		return s.err
	}
	p.explore(s.url, s.guardedURL+page.Path, s.bank.URL(), s.stage.operators())
	return errors.Join(p.err, s.service.Wait(ctx))
}

// open starts everything that the story is about.
func (s *story) open(ctx context.Context, c Config) (err error) {
	if s.stage, err = openStage(ctx, c.Database, s.printer); err != nil {
		return err
	}
	s.ends = append(s.ends, s.stage.close)
	if s.bank, err = shop.StartProvider(ctx); err != nil {
		return err
	}
	s.ends = append(s.ends, s.bank.Stop)
	if s.books, err = startBookkeeping(ctx); err != nil {
		return err
	}
	s.ends = append(s.ends, s.books.stop)
	if s.service, err = s.serve(ctx, c); err != nil {
		return err
	}
	s.ends = append(s.ends, func() error { return stopNode(ctx, s.service) })
	s.url = s.service.URL()
	return nil
}

func stopNode(ctx context.Context, node *pawl.Service) error {
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return node.Stop(stopping)
}

// close ends it, the newest first.
func (s *story) close() (err error) {
	for _, end := range slices.Backward(s.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// config is that of every node of the story.
func (s *story) config() pawl.Config {
	return pawl.Config{
		Workflows: []workflow.Source{order.Workflow(&provider.Client{URL: s.bank.URL()}), fines.Workflow, fines.Version2},
		Database:  s.stage.url,
		Schema:    name,
		Network:   pawl.Network{MaxWait: time.Minute}, // a machine may be slow
		Log:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// loopbackPort is any free port, for this machine alone.
const loopbackPort = "127.0.0.1:0"

// serve starts the service. The usual port may be taken, by a service in real
// use for instance; then another will do, unless this one was asked for.
func (s *story) serve(ctx context.Context, c Config) (*pawl.Service, error) {
	sink, err := s.books.sink()
	if err != nil {
		return nil, err
	}
	config := s.config()
	config.Address = c.Address
	config.Sinks = []relay.Sink{sink}
	config.Inbox = map[string]pawl.InboxConsumer{order.PaymentNotices: {Secrets: []signature.Secret{s.secret}}}
	if config.Address == "" && c.Once {
		config.Address = loopbackPort
	}
	service, err := pawl.Start(ctx, config)
	if config.Address == "" && errors.Is(err, syscall.EADDRINUSE) {
		config.Address = loopbackPort
		service, err = pawl.Start(ctx, config)
	}
	return service, err
}
