package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/internal/streamtest"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/auth/ticket/keyset"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// server is the real thing: an engine on its own database, behind HTTP.
type server struct {
	t       testing.TB
	url     string
	pool    *pgxpool.Pool
	engine  *engine.Engine
	courier *courier
	api     *api.API
	log     *lockedBuffer
	vouched ticket.Vouched // of the tickets that API keys have asked for
}

// newServer starts a server that ends with the test.
func newServer(t testing.TB, config ...func(*api.Config)) *server {
	t.Helper()
	return newServerOf(t, nil, nil, config...)
}

// newServerOf is like newServer, with more workflows and sinks.
func newServerOf(t testing.TB, more []workflow.Source, sinks []relay.Sink, config ...func(*api.Config)) *server {
	t.Helper()
	return newServerOn(t, func(c *engine.Config) { c.Workflows, c.Sinks = append(c.Workflows, more...), sinks }, config...)
}

// newServerOn is like newServer, with a changed configuration of the engine.
func newServerOn(t testing.TB, change func(*engine.Config), config ...func(*api.Config)) *server {
	t.Helper()
	s := &server{t: t, pool: pgtest.Pool(t), courier: newCourier(t), log: &lockedBuffer{}}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ec := engine.Config{
		Pool: s.pool, Workflows: []workflow.Source{parcel, s.courier.workflow()}, Log: logger,
		// Nothing happens by itself while a test looks: no heartbeat, no purge; and on a
		// machine that stands still for a while no lease is lost.
		InFlight: engine.InFlightConfig{Lease: time.Hour}, SinkLease: time.Hour, Retention: engine.RetentionConfig{Off: true},
	}
	change(&ec)
	var err error
	s.engine, err = engine.New(ec)
	require.NoError(t, err)
	require.NoError(t, s.engine.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // a test that failed has left work behind
		defer cancel()
		s.engine.Stop(ctx)
	})
	keys := keyset.New(keyset.Config{Pool: s.pool, In: schema.For(schema.Default), Every: 50 * time.Millisecond, Log: logger})
	t.Cleanup(keys.Stop)
	c := api.Config{Logger: logger, Limits: api.Limits{Wait: time.Minute}} // a machine may be slow
	c.Tickets = ticket.New(keys, func(ctx context.Context, id string) (<-chan struct{}, error) { return s.vouched(ctx, id) })
	for _, change := range config {
		change(&c)
	}
	s.api, err = api.New(s.engine, c)
	require.NoError(t, err)
	listener := httptest.NewUnstartedServer(declared(t, s.api, s.engine.Read().Workflows()))
	listener.Listener = streamtest.Listener{Listener: listener.Listener}
	listener.Start()
	s.url = listener.URL
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		assert.NoError(t, s.api.Stop(ctx), "stop the streams")
		listener.Close()
	})
	return s
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request. Headers are given as pairs.
func (s *server) do(method, path string, body []byte, headers ...string) answer {
	s.t.Helper()
	return s.send(s.request(s.t.Context(), method, path, body, headers...))
}

func (s *server) request(ctx context.Context, method, path string, body []byte, headers ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	require.NoError(s.t, err)
	r.Header = headerOf(headers)
	return r
}

// headerOf makes a header of pairs.
func headerOf(pairs []string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func (s *server) send(r *http.Request) answer {
	s.t.Helper()
	response, err := http.DefaultClient.Do(r)
	// net/http answers a request that is too large before it has read it, and closes the connection half a second later. A client that has not
	// read the answer by then sends it again.
	for tries := 0; tries < 10 && hungUp(err) && r.GetBody != nil && (r.ContentLength < 0 || r.ContentLength > 256<<10); tries++ {
		if r.Body, err = r.GetBody(); err == nil {
			response, err = http.DefaultClient.Do(r)
		}
	}
	require.NoErrorf(s.t, err, "%s %s", r.Method, r.URL)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoErrorf(s.t, err, "%s %s: read the answer", r.Method, r.URL)
	return answer{response.StatusCode, response.Header, body}
}

// hungUp reports whether the server has hung up.
func hungUp(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (s *server) get(path string, headers ...string) answer {
	s.t.Helper()
	return s.do(http.MethodGet, path, nil, headers...)
}

// post sends a command with a key and a JSON body.
func (s *server) post(path, key, body string, headers ...string) answer {
	s.t.Helper()
	headers = append([]string{"Content-Type", "application/json", "Idempotency-Key", key}, headers...)
	return s.do(http.MethodPost, path, []byte(body), headers...)
}

// packed creates a parcel and returns its id.
func (s *server) packed(weight string) uuid.UUID {
	s.t.Helper()
	a := s.post("/v1/workflows/parcel/pack", uuid.NewString(), `{"to":"Graz","weight":`+weight+`}`)
	a.want(s.t, http.StatusCreated)
	return read[transitions.Result](s.t, a).Instance
}

// stamp changes an instance n times.
func (s *server) stamp(id uuid.UUID, n int) {
	s.t.Helper()
	for range n {
		s.post("/v1/instances/"+id.String()+"/stamp", uuid.NewString(), `{}`).want(s.t, http.StatusOK)
	}
}

func (a answer) want(t testing.TB, status int) {
	t.Helper()
	require.Equalf(t, status, a.status, "status: %s", a.body)
}

// wantProblem checks that the answer is a problem document with this status and
// code, and returns it.
func (a answer) wantProblem(t testing.TB, status int, code workflow.Code) transitions.Problem {
	t.Helper()
	var p struct {
		transitions.Problem
		Position int64 `json:"position,omitzero"` // where the failure of an activity is in the log
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("status %d has Content-Type %q: %.300s", a.status, got, a.body)
		return p.Problem
	}
	if err := json.Unmarshal(a.body, &p, json.RejectUnknownMembers(true)); err != nil {
		t.Errorf("the problem document cannot be read: %v: %.300s", err, a.body)
		return p.Problem
	}
	assert.Truef(t, a.status == status && p.Status == status && p.Code == code && p.Detail != "" && p.Title != "" &&
		strings.HasSuffix(p.Type, "#"+string(code)),
		"status %d, want %d %s: %.500s", a.status, status, code, a.body)
	return p.Problem
}

// read decodes an answer strictly.
func read[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	require.NoErrorf(t, json.Unmarshal(a.body, &v, json.RejectUnknownMembers(true)),
		"status %d cannot be read: %.500s", a.status, a.body)
	return v
}

// rows counts the rows of every table of the schema.
func (s *server) rows() map[string]int {
	s.t.Helper()
	tables, err := s.pool.Query(s.t.Context(), `
		SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition`, schema.Default)
	require.NoError(s.t, err)
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	require.NoError(s.t, err)
	counts := map[string]int{}
	for _, name := range names {
		var n int
		require.NoError(s.t, s.pool.QueryRow(s.t.Context(), "SELECT count(*) FROM "+schema.Default+"."+name).Scan(&n))
		counts[name] = n
	}
	return counts
}

// waitForStreams waits until the server has that many streams.
func (s *server) waitForStreams(n int) {
	s.t.Helper()
	await.Eventually(s.t, fmt.Sprintf("there are %d streams", n), func() bool { return s.api.OpenStreams() == n })
}

// later runs f in a goroutine of its own. The channel is closed without a value
// if f fails the test.
func later[T any](f func() T) <-chan T {
	out := make(chan T, 1)
	go func() {
		defer close(out)
		out <- f()
	}()
	return out
}

func (s *server) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), sql, args...)
	require.NoError(s.t, err, sql)
}

// lockedBuffer takes the log of a server.
type lockedBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	told map[string]chan struct{} // by what is waited for
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.b.Write(p)
	l.tell()
	return n, err
}

// says returns a channel that is closed when the text has been written.
func (l *lockedBuffer) says(text string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := make(chan struct{})
	if l.told == nil {
		l.told = map[string]chan struct{}{}
	}
	l.told[text] = told
	l.tell()
	return told
}

func (l *lockedBuffer) tell() {
	for text, told := range l.told {
		if bytes.Contains(l.b.Bytes(), []byte(text)) {
			close(told)
			delete(l.told, text)
		}
	}
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
