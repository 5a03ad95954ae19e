package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/outbox/feed"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

const (
	tenant   = "acme"
	patience = await.Patience // bounds steps that should take no time
)

var same = schema.For(schema.Default)

func poolOf(t testing.TB, url string, trace pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.MaxConns = 10
	if trace != nil {
		config.ConnConfig.RuntimeParams["application_name"] = "node"
		config.ConnConfig.Tracer = trace
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if len(args) == 0 {
		args = []any{pgx.QueryExecModeSimpleProtocol}
	}
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func number(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (n int64) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// node is a relay with its own feed and pool.
type node struct {
	*relay.Relay
	pool  *pgxpool.Pool
	feed  *feed.Feed
	asked *pgtest.Queries
	log   *testlog.Log
	name  string
}

// startNode starts a node for sinks.
func startNode(t testing.TB, url string, sinks ...relay.Sink) *node {
	t.Helper()
	n := newNode(t, url, nil, sinks...)
	n.start(t)
	return n
}

func newNode(t testing.TB, url string, change func(*relay.Config), sinks ...relay.Sink) *node {
	t.Helper()
	n := &node{asked: &pgtest.Queries{}, log: &testlog.Log{}, name: "node-" + uuid.NewString()[:8]}
	n.pool = poolOf(t, url, n.asked)
	pool := tables.AsNode(t, n.pool, "")
	events := outbox.New(pool, same, "")
	n.feed = feed.New(feed.Config{Log: events, Logger: slog.New(n.log)})
	c := relay.Config{Pool: pool, Events: events, Feed: n.feed, Node: n.name, Log: slog.New(n.log), Sinks: sinks,
		Lease: patience / 3} // outlasts stalls of the machine; unreleased leases are waited for
	if change != nil {
		change(&c)
	}
	r, err := relay.New(c)
	require.NoError(t, err)
	n.Relay = r
	return n
}

func (n *node) start(t testing.TB) {
	t.Helper()
	n.feed.Start()
	t.Cleanup(n.feed.Stop)
	t.Cleanup(n.stop)
	require.NoError(t, n.Start(t.Context()))
}

func (n *node) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n.Stop(ctx)
}

// committed notifies the node of a commit, as the pipeline does.
func (n *node) committed(tenant string, head int64) {
	n.feed.Committed(tenant, head, nil)
	n.NoteHead(tenant, head)
}

// publish commits a transition for each letter, of the instance of that name, and notifies the
// nodes. It returns the last position.
func publish(t testing.TB, pool *pgxpool.Pool, tenant, instances string, nodes ...*node) (head int64) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		head, err = write(t.Context(), tx, tenant, instances)
		return err
	})
	require.NoError(t, err)
	for _, n := range nodes {
		n.committed(tenant, head)
	}
	return head
}

// write inserts transitions; every fifth has two events.
func write(ctx context.Context, tx pgx.Tx, tenant, instances string) (head int64, err error) {
	ids := make([]string, len(instances))
	for i, name := range []byte(instances) {
		ids[i] = instanceOf(name).String()
	}
	if err := tx.QueryRow(ctx, `INSERT INTO pawl.log AS l (tenant, head) VALUES ($1, $2)
		ON CONFLICT (tenant) DO UPDATE SET head = l.head + excluded.head RETURNING head`, tenant, len(ids)).Scan(&head); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
		SELECT $1, p, 'order.' || o, o, 'order', u.id, p, 'move', 's', now()
		FROM unnest($3::uuid[]) WITH ORDINALITY AS u(id, n), LATERAL (SELECT $2::bigint + u.n AS p) AS at,
			generate_series(0, CASE WHEN p % 5 = 0 THEN 1 ELSE 0 END) o`, tenant, head-int64(len(ids)), ids)
	return head, err
}

// events returns the number of events up to a position.
func events(head int64) int { return int(head + head/5) }

func instanceOf(name byte) uuid.UUID { return uuid.UUID{15: name} }

// receiver is a scriptable sink.
type receiver struct {
	mu     sync.Mutex
	list   []transitions.Event // deliveries, in order
	tries  map[string]int      // by event
	busy   map[instance]bool
	calls  int
	closed int
	broken []string // violated guarantees of the relay

	fail  func(e *transitions.Event, try int) *sink.Failure // nil: never
	enter func(ctx context.Context, events []transitions.Logged)
}

type instance struct {
	tenant string
	id     uuid.UUID
}

// Deliver implements sink.Sink.
func (r *receiver) Deliver(ctx context.Context, batch []transitions.Logged) []*sink.Failure {
	r.mu.Lock()
	if r.busy == nil {
		r.busy, r.tries = map[instance]bool{}, map[string]int{}
	}
	r.calls++
	mine := map[instance]bool{}
	for i := range batch {
		mine[instance{batch[i].Tenant, batch[i].Instance}] = true
	}
	for k := range mine {
		if r.busy[k] {
			r.broken = append(r.broken, fmt.Sprintf("%s/%s is in two calls", k.tenant, k.id))
		}
		r.busy[k] = true
	}
	enter := r.enter
	r.mu.Unlock()
	if enter != nil {
		enter(ctx, batch)
	}
	failures := sink.InOrder(ctx, batch, r.receive)
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range mine {
		delete(r.busy, k)
	}
	return failures
}

func (r *receiver) receive(_ context.Context, e *transitions.Logged) *sink.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := sink.MessageID(&e.Event)
	r.tries[id]++
	if want := string(e.AppendCloudEvent(nil)); string(e.CloudEvent) != want {
		r.broken = append(r.broken, fmt.Sprintf("the CloudEvent of %s is %s", id, e.CloudEvent))
	}
	if r.fail != nil {
		if f := r.fail(&e.Event, r.tries[id]); f != nil {
			return f
		}
	}
	r.list = append(r.list, e.Event)
	return nil
}

// Close implements sink.Sink.
func (r *receiver) Close(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed++
	return nil
}

// set changes the receiver under its lock.
func (r *receiver) set(change func(*receiver)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

func (r *receiver) got() []transitions.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// ids returns the ids of the delivered events of an instance, in order; of all for 0.
func (r *receiver) ids(name byte) (ids []string) {
	for _, e := range r.got() {
		if name == 0 || e.Instance == instanceOf(name) {
			ids = append(ids, e.ID())
		}
	}
	return ids
}

// wants waits for count different events.
func (r *receiver) wants(t testing.TB, count int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d events are delivered", count), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.list) < count {
			return false
		}
		seen := map[string]bool{}
		for i := range r.list {
			seen[sink.MessageID(&r.list[i])] = true
		}
		return len(seen) >= count
	})
}

// inOrder checks that each instance's events arrived in order, ignoring repetitions, and returns
// the number of repetitions.
func (r *receiver) inOrder(t testing.TB) (repeated int) {
	t.Helper()
	type place struct {
		position int64
		ordinal  int
	}
	last, seen := map[instance]place{}, map[string]bool{}
	for _, e := range r.got() {
		if seen[sink.MessageID(&e)] {
			repeated++
			continue
		}
		seen[sink.MessageID(&e)] = true
		k, p := instance{e.Tenant, e.Instance}, last[instance{e.Tenant, e.Instance}]
		assert.Truef(t, e.Position >= p.position && (e.Position != p.position || e.Ordinal > p.ordinal),
			"%s: %s came after %d-%d", e.Instance, e.ID(), p.position, p.ordinal)
		last[k] = place{e.Position, e.Ordinal}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.broken {
		t.Error(b)
	}
	return repeated
}

// quick returns a sink with a short backoff.
func quick(name string, to sink.Sink, change ...func(*relay.Sink)) relay.Sink {
	s := relay.Sink{Name: name, To: to, Retry: workflow.Retry{Attempts: 3, First: 2 * time.Millisecond, Max: 10 * time.Millisecond}}
	for _, f := range change {
		f(&s)
	}
	return s
}

// cursor returns a stored cursor.
func cursor(t testing.TB, pool *pgxpool.Pool, sink, tenant string) int64 {
	t.Helper()
	return number(t, pool, `SELECT coalesce((SELECT position FROM pawl.outbox_cursor WHERE sink = $1 AND tenant = $2), 0)`, sink, tenant)
}

func cursorReaches(t testing.TB, pool *pgxpool.Pool, sink, tenant string, position int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("the cursor of %s is at %d", sink, position), func() bool { return cursor(t, pool, sink, tenant) == position })
}

var eventually = await.Eventually
