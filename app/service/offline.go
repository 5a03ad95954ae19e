package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/schema"
)

// StopTimeout bounds a graceful shutdown.
const StopTimeout = 20 * time.Second

// need is the requirement of a function on its database.
type need int

const (
	anyDatabase need = iota // a private one is created
	existing                // commands that only read do not create one
	tables                  // with the tables of this program
)

// Migrate brings the tables up to date and returns the number of applied migrations. Errors: a *usage.Error for an invalid schema name;
// those of package schema. The same holds for the other functions; each uses only Database, Schema and Log of c unless it says otherwise.
func Migrate(ctx context.Context, c Config) (applied int, err error) {
	err = withDatabase(ctx, c, anyDatabase, func(d *database) (err error) {
		applied, err = schema.Migrate(ctx, d.pool, c.Schema)
		return err
	})
	return applied, err
}

// SchemaStatus reads the version of the tables, and changes nothing.
func SchemaStatus(ctx context.Context, c Config) (s schema.Status, err error) {
	err = withDatabase(ctx, c, existing, func(d *database) (err error) {
		s, err = schema.StatusOf(ctx, d.pool, c.Schema)
		return err
	})
	return s, err
}

// Grant grants the rights of a node on the tables to a role, and returns the statements. A dry run only returns them.
func Grant(ctx context.Context, c Config, role string, dryRun bool) (list []string, err error) {
	grant := schema.Grant
	if dryRun {
		grant = schema.PlanGrants
	}
	err = withDatabase(ctx, c, tables, func(d *database) (err error) {
		list, err = grant(ctx, d.pool, c.Schema, role)
		return err
	})
	return list, err
}

// WithURL calls do with the connection string of the database, or of a private server that runs meanwhile if c names none. It does not
// connect to a named database.
func WithURL(ctx context.Context, c Config, do func(url string) error) error {
	if err := schema.CheckName(c.Schema); err != nil {
		return &usage.Error{Err: err}
	}
	if c.Database != "" {
		return do(c.Database)
	}
	return withDatabase(ctx, c, existing, func(d *database) error { return do(d.local.URL()) })
}

// WithKeys calls do with the table of API keys.
func WithKeys(ctx context.Context, c Config, do func(context.Context, *apikey.Table) error) error {
	return withDatabase(ctx, c, tables, func(d *database) error { return do(ctx, keysOf(d, c.Schema)) })
}

// withDatabase calls do with a connection.
func withDatabase(ctx context.Context, c Config, n need, do func(*database) error) (err error) {
	if err := schema.CheckName(c.Schema); err != nil {
		return &usage.Error{Err: err}
	}
	if n != anyDatabase {
		if err := c.hasDatabase(); err != nil {
			return err
		}
	}
	d, err := openDatabase(ctx, c.Database, c.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if n == tables {
		if err := schema.Check(ctx, d.pool, c.Schema); err != nil {
			if d.local != nil {
				err = ofPrivate(err)
			}
			return err
		}
	}
	return do(d)
}

// hasDatabase refuses a configuration without a database if there is no private one either: a command that reads existing data does not
// create one. Error: a *usage.Error.
func (c *Config) hasDatabase() error {
	if c.Database != "" {
		return nil
	}
	there, err := localpg.Exists()
	if err == nil && !there {
		return usage.Errorf("no database is named, and no private one exists: set DATABASE_URL or --database")
	}
	return err
}

// WithEngine calls do with an engine with the workflows of c that is not started. If do starts it, it executes nothing that waits.
func WithEngine(ctx context.Context, c Config, do func(context.Context, *engine.Engine) error, change ...func(*engine.Config)) (err error) {
	if c, err = c.withDefaults(); err != nil {
		return err
	}
	return withDatabase(ctx, c, tables, func(d *database) error {
		config := engine.Config{Pool: d.pool, Workflows: c.Workflows, Schema: c.Schema, Log: c.Log, Transient: true,
			InFlight: engine.InFlightConfig{Workers: -1}, Retention: engine.RetentionConfig{Off: true}}
		for _, f := range change {
			f(&config)
		}
		e, err := engine.New(config)
		if err != nil {
			return err
		}
		defer func() {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
			defer cancel()
			e.Stop(stopping)
		}()
		return do(ctx, e)
	})
}

// ofPrivate adds the location of the private database to an error about it.
func ofPrivate(err error) error {
	dir, notFound := localpg.UserDir("postgres")
	if notFound != nil {
		return err
	}
	return fmt.Errorf("%w; no database was named, so it is the private one in %s: %s names another folder", err, dir, localpg.EnvHome)
}

// Use is what a program does with the API on a database.
type Use struct {
	Commits    bool          // the program commits commands like a node, and leaves activities to nodes
	Records    bool          // the program also records its workflows
	KeepEvents time.Duration // zero means the default
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

// inProcess serves a handler over connections within this process, for any host.
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
