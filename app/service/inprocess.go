package service

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
)

// Use is what a program does with the API on a database.
type Use struct {
	Commits    bool          // the program is a node meanwhile, which commits commands and leaves activities to other nodes
	Records    bool          // as a node it records its workflows
	KeepEvents time.Duration // of the nodes; zero means the default
}

// WithAPI calls do with a client of the API on the database of c, which must have the tables. It does not listen: requests to any loopback
// host are answered in this process, and every caller is trusted, because access to the database includes all rights. Unless u.Commits it
// refuses commands, and reading writes nothing.
//
// Errors: a *usage.Error for an invalid configuration; those of package schema, engine.New and engine.Start, and of do.
func WithAPI(ctx context.Context, c Config, u Use, do func(ctx context.Context, h *http.Client) error) error {
	return WithEngine(ctx, c, func(ctx context.Context, e *engine.Engine) error {
		start := e.StartReading
		if u.Commits {
			start = e.Start
		}
		if err := start(ctx); err != nil {
			return err
		}
		return withInterface(ctx, c, e, do)
	}, func(config *engine.Config) {
		config.Transient = !u.Records
		config.Retention.Outbox = cmp.Or(u.KeepEvents, config.Retention.Outbox)
	})
}

func withInterface(ctx context.Context, c Config, e *engine.Engine, do func(ctx context.Context, h *http.Client) error) (err error) {
	a, err := api.New(e, api.Config{Logger: c.Log})
	if err != nil {
		return err
	}
	h, stop := inProcess(a)
	defer stop()
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
		defer cancel()
		err = errors.Join(err, a.Stop(stopping))
	}()
	return do(ctx, h)
}

// inProcess has a handler answer over connections that do not leave this process, whatever host is asked.
func inProcess(handler http.Handler) (h *http.Client, stop func()) {
	pipes := &pipeListener{calls: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(pipes) })
	transport := &http.Transport{DialContext: pipes.dial}
	return &http.Client{Transport: transport}, func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	}
}

// pipeListener listens to its own dial.
type pipeListener struct {
	calls   chan net.Conn
	closed  chan struct{}
	closing sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.calls <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept returns the next connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.calls:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dial.
func (l *pipeListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Addr is that of a pipe.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
