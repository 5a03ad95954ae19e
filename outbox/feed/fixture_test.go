package feed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/notify"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/outbox/feed"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
)

func TestMain(m *testing.M) { tables.Main(m) }

const tenant = "acme corp"

// limit bounds the waits of a test.
const limit = await.Patience

// queries counts a node's queries.
type queries struct {
	pgtest.Queries
	mu     sync.Mutex
	before func() // called before a piece of a log is read
	after  func() // called once after a read of a log
}

// Kinds of queries.
const (
	logRead = "FROM pawl.outbox"                               // a piece of a log
	poll    = "AS u(tenant) CROSS JOIN LATERAL (SELECT h.head" // last positions of all followed logs
	head    = "coalesce(pawl.head("                            // one last position
	all     = ""
)

func (q *queries) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(q.Queries.TraceQueryStart(ctx, conn, data), q, strings.Contains(data.SQL, logRead))
}

func (q *queries) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	ctx = q.Queries.TraceBatchStart(ctx, conn, data)
	q.mu.Lock()
	do := q.before
	q.mu.Unlock()
	isRead := func(one *pgx.QueuedQuery) bool { return strings.Contains(one.SQL, logRead) }
	if do != nil && slices.ContainsFunc(data.Batch.QueuedQueries, isRead) {
		do()
	}
	return ctx
}

func (q *queries) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if !ctx.Value(q).(bool) {
		return
	}
	q.mu.Lock()
	do := q.after
	q.after = nil
	q.mu.Unlock()
	if do != nil {
		do()
	}
}

// node is a feed with its own pool.
type node struct {
	*feed.Feed
	*queries
	pool *pgxpool.Pool
}

// startNode starts a node. A quiet node receives no notifications.
func startNode(t testing.TB, url string, quiet bool) *node {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	n, direct := &node{queries: &queries{}}, pgtest.Direct(t, url)
	config.ConnConfig.Tracer = n.queries
	config.MaxConns = 8
	n.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(n.pool.Close)
	log := slog.New(slog.DiscardHandler)
	exchange := notify.New(notify.Config{
		Pool: n.pool, Channel: "pawl", Log: log, Off: quiet,
		Connect: func(ctx context.Context, name string) (*pgx.Conn, error) {
			c, err := pgx.ParseConfig(direct)
			if err != nil {
				return nil, err
			}
			c.Tracer, c.RuntimeParams["application_name"] = n.queries, name
			return pgx.ConnectConfig(ctx, c)
		},
	})
	n.Feed = feed.New(feed.Config{Log: outbox.New(n.pool, schema.For(schema.Default), ""), Logger: log, Peers: exchange})
	n.Start()
	t.Cleanup(n.Stop)
	exchange.Start(notify.Listener{Head: n.NoteHead})
	t.Cleanup(exchange.Stop)
	return n
}

// eventsAt returns the number of events of the transition at a position.
func eventsAt(position int64) int {
	if position%5 == 0 {
		return 3
	}
	return 1
}

// write commits transitions and returns the last position.
func (n *node) write(ctx context.Context, of string, count int) (head int64, err error) {
	err = pgx.BeginFunc(ctx, n.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `INSERT INTO pawl.log AS l (tenant, head) VALUES ($1, $2)
			ON CONFLICT (tenant) DO UPDATE SET head = l.head + excluded.head RETURNING head`, of, count).Scan(&head); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
			SELECT $1, p, 'order.' || o, o, 'order', '00000000-0000-8000-8000-000000000001', p, 'move', 's', now()
			FROM generate_series($2::bigint - $3 + 1, $2) p, generate_series(0, CASE WHEN p % 5 = 0 THEN 2 ELSE 0 END) o`, of, head, count)
		return err
	})
	return head, err
}

// publish commits transitions and notifies the node, which must read them.
func (n *node) publish(t testing.TB, count int) int64 {
	t.Helper()
	head, err := n.write(t.Context(), tenant, count)
	require.NoError(t, err)
	n.Committed(tenant, head, nil)
	return head
}

// handOver commits transitions and passes their events to the node, as its pipeline does.
func (n *node) handOver(t testing.TB, log *outbox.Table, count int) int64 {
	head, err := n.write(t.Context(), tenant, count)
	if err != nil {
		t.Error(err)
		return 0
	}
	events, err := log.After(t.Context(), tenant, head-int64(count), count)
	assert.NoError(t, err)
	n.Committed(tenant, head, func() []transitions.Event { return events })
	return head
}

// startFollowed starts a node with a reader, and another node, with its log, that only commits. The
// reader's tail has begun; its last commit was not read from the table.
func startFollowed(t testing.TB) (n, other *node, log *outbox.Table, r *reader) {
	t.Helper()
	url := pgtest.URL(t)
	n, other = startNode(t, url, true), startNode(t, url, true)
	log = outbox.New(other.pool, schema.For(schema.Default), "")
	r = n.reader(t, 0)
	eventually(t, "its tail has begun", func() bool {
		reads := n.Count(logRead)
		r.mustReadTo(t, n.handOver(t, log, 1))
		return n.Count(logRead) == reads
	})
	return n, other, log, r
}

// reader follows a log and checks that every event arrives once and in order.
type reader struct {
	f    transitions.Follower
	last int64
}

func (n *node) reader(t testing.TB, after int64) *reader {
	r := &reader{f: n.Follow(tenant, after), last: after}
	t.Cleanup(r.f.Close)
	return r
}

func (r *reader) take(b transitions.Batch) error {
	want, ordinal := r.last+1, 0
	for _, e := range b.Events {
		if e.Tenant != tenant || e.Position != want || e.Ordinal != ordinal {
			return fmt.Errorf("event %d-%d of %q, want %d-%d", e.Position, e.Ordinal, e.Tenant, want, ordinal)
		}
		if cloud := string(e.CloudEvent); want%100 == 0 && cloud != string(e.AppendCloudEvent(nil)) {
			return fmt.Errorf("at %d the rendered event is %s", want, cloud)
		}
		if ordinal++; ordinal == eventsAt(want) {
			want, ordinal = want+1, 0
		}
	}
	if ordinal != 0 {
		return fmt.Errorf("the batch ends inside of transition %d", want)
	}
	if b.Last != want-1 || b.Head < b.Last {
		return fmt.Errorf("the batch ends at %d and says %d, of a log of %d", want-1, b.Last, b.Head)
	}
	r.last = b.Last
	return nil
}

func (r *reader) readTo(ctx context.Context, position int64) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for r.last < position {
		batch, err := r.f.Next(ctx)
		if err != nil {
			return fmt.Errorf("after %d: %w", r.last, err)
		}
		if len(batch.Events) == 0 {
			return errors.New("Next returned nothing")
		}
		if err := r.take(batch); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) mustReadTo(t testing.TB, position int64) {
	t.Helper()
	require.NoError(t, r.readTo(t.Context(), position))
}

var eventually = await.Eventually
