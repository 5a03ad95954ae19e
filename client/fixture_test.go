package client_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// Parcel is the data of the test workflow.
type Parcel struct {
	To      string `json:"to"`
	Stamped int    `json:"stamped"`
	Signed  string `json:"signed,omitempty"`
}

type Pack struct {
	To     string `json:"to" validate:"required"`
	Number string `json:"number" validate:"required"`
}

type Deliver struct {
	By string `json:"by"`
}

// courier delivers when the test allows it: nil or an error.
type courier chan error

func (c courier) deliver(ctx context.Context, _ *workflow.Attempt, _ Parcel, p Deliver) (Deliver, error) {
	select {
	case err := <-c:
		return p, err
	case <-ctx.Done():
		return p, context.Cause(ctx)
	}
}

var errNobodyHome = errors.New("nobody is at home")

func parcels(c courier) *workflow.Definition[Parcel] {
	return workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", func(_ *workflow.Call, d *Parcel, p Pack) error {
			d.To = p.To
			return nil
		}).BusinessKey(func(p Pack) string { return p.Number }),
		workflow.On("stamp", workflow.From("packed"), "packed", func(c *workflow.Call, d *Parcel, _ workflow.None) error {
			d.Stamped++
			c.Emit("parcel.priced", map[string]int{"stamped": d.Stamped}) // a second event at one position
			return nil
		}),
		workflow.On("lose", workflow.From("delivered"), "packed", func(*workflow.Call, *Parcel, workflow.None) error { return nil }),
		workflow.Do("deliver", workflow.From("packed"), "underway", "delivered", c.deliver, func(_ *workflow.Call, d *Parcel, r Deliver) error {
			d.Signed = r.By
			return nil
		}).OrElse("packed", func(*workflow.Call, *Parcel, workflow.Failure) error { return nil }).Retry(workflow.Retry{Attempts: 1}),
	)
}

// Typed names of the transitions.
var (
	pack    = workflow.NameOf[Pack](parcels(nil), "pack")
	stamp   = workflow.NameOf[workflow.None](parcels(nil), "stamp")
	lose    = workflow.NameOf[workflow.None](parcels(nil), "lose")
	deliver = workflow.NameOf[Deliver](parcels(nil), "deliver")
)

// installation is a database with nodes.
type installation struct {
	t       testing.TB
	pool    *pgxpool.Pool
	courier courier
}

func install(t testing.TB) *installation {
	return &installation{t, pgtest.Pool(t), make(courier)}
}

// node serves the workflow over HTTP.
type node struct {
	url  string
	api  *api.API
	tap  *tap
	open atomic.Int64 // requests and streams in progress
	dies func()       // cuts all connections, as if the node was killed
}

// node starts a node. around, if not nil, wraps its handler.
func (i *installation) node(around func(http.Handler) http.Handler, change ...func(*api.Config)) *node {
	i.t.Helper()
	e, err := engine.New(engine.Config{Pool: i.pool, Workflows: []workflow.Source{parcels(i.courier)}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(i.t, err)
	require.NoError(i.t, e.Start(i.t.Context()))
	c := api.Config{Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	a, err := api.New(e, c)
	require.NoError(i.t, err)
	var handler http.Handler = a
	if around != nil {
		handler = around(a)
	}
	n := &node{api: a}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.open.Add(1)
		defer n.open.Add(-1)
		handler.ServeHTTP(w, r)
	}))
	n.tap = &tap{Listener: server.Listener, conns: map[net.Conn]bool{}}
	server.Listener = n.tap
	server.Start()
	n.url = server.URL
	n.dies = sync.OnceFunc(func() {
		_ = n.tap.Close()
		n.tap.cut()
	})
	i.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		n.dies()
		assert.NoError(i.t, a.Stop(ctx))
		server.Close()
		e.Stop(ctx)
	})
	return n
}

// tap tracks the connections of a server.
type tap struct {
	net.Listener
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (l *tap) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns[conn] = true
	}
	return conn, err
}

// cut closes all connections.
func (l *tap) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close()
	}
	clear(l.conns)
}

// dial returns a client of nodes with short delays.
func dial(t testing.TB, c client.Config, nodes ...*node) *client.Client {
	t.Helper()
	for _, n := range nodes {
		c.URLs = append(c.URLs, n.url)
	}
	if c.Retry == (client.Retry{}) {
		c.Retry = client.Retry{First: time.Millisecond, Max: 10 * time.Millisecond}
	}
	out, err := client.New(c)
	require.NoError(t, err)
	t.Cleanup(out.Close)
	return out
}

// must fails the test on an error.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// packed creates a parcel.
func packed(t testing.TB, c *client.Client, number string) client.Receipt {
	t.Helper()
	r, err := client.Submit(t.Context(), c, pack, client.NewInstance, Pack{To: "Graz", Number: number})
	require.NoError(t, err)
	return r
}

// stamped stamps a parcel several times.
func stamped(t testing.TB, c *client.Client, number string, times int) {
	t.Helper()
	for range times {
		_, err := client.Submit(t.Context(), c, stamp, client.BusinessKey("parcel", number), workflow.None{})
		require.NoError(t, err)
	}
}

func wantCode(t testing.TB, err error, want workflow.Code) *workflow.Error {
	t.Helper()
	e, _ := errors.AsType[*workflow.Error](err)
	require.Truef(t, e != nil && e.Code == want, "%v, want %s", err, want)
	return e
}
