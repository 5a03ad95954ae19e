package retention_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine/internal/retention"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/schema"
)

func TestMain(m *testing.M) { tables.Main(m) }

const day = 24 * time.Hour

// clock is the time of a test, which goes only when it is told to.
type days struct{ at atomic.Int64 }

func (c *days) now() time.Time       { return time.UnixMicro(c.at.Load()).UTC() }
func (c *days) skip(d time.Duration) { c.at.Add(d.Microseconds()) }

func newClock(at string) *days {
	moment, err := time.Parse(time.DateOnly, at)
	if err != nil {
		panic(err)
	}
	c := &days{}
	c.at.Store(moment.UnixMicro())
	return c
}

// another is a pool of its own on the same database.
func another(t testing.TB, pool *pgxpool.Pool, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	config := pool.Config().Copy()
	config.ConnConfig.Tracer = tracer
	p, err := pgxpool.NewWithConfig(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// seldom has a runner look only when it is woken, and keep its lease for long.
func seldom(c *retention.Config) { c.Every = time.Hour }

// woken waits for what becomes true when runners look.
func woken(t testing.TB, what string, true func() bool, runners ...*retention.Runner) {
	t.Helper()
	eventually(t, what, func() bool {
		for _, r := range runners {
			r.Wake()
		}
		return true()
	})
}

// runner starts a runner.
func runner(t testing.TB, pool *pgxpool.Pool, node string, c *days, change ...func(*retention.Config)) *retention.Runner {
	t.Helper()
	config := retention.Config{Pool: pool, In: schema.For(schema.Default), Node: node, Clock: clock.New(c.now),
		Busy:      func() float64 { return 0 },
		Workflows: []string{}, Replay: day, Outbox: 30 * day, Batch: 1000, Every: 50 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	for _, f := range change {
		f(&config)
	}
	r := retention.New(config)
	r.Start()
	t.Cleanup(r.Stop)
	return r
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if len(args) == 0 {
		args = []any{pgx.QueryExecModeSimpleProtocol}
	}
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func ask[T any](t testing.TB, q querier, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, q.QueryRow(t.Context(), sql, args...).Scan(&v), sql)
	return v
}

var eventually = await.Eventually

// traffic inserts what n commands a tenant leave behind that were done at a time: a
// command that expires a day later, and an event.
func traffic(t testing.TB, pool *pgxpool.Pool, at time.Time, n int) {
	t.Helper()
	exec(t, pool, "SELECT pawl.make_partition('outbox', $1)", at)
	exec(t, pool, `WITH done AS (
		INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, version, actor, code, body,
			created_at, finished_at, expires_at)
		SELECT 't' || x.t, 'w:' || $1::timestamptz, n, sha256('x'), 'succeeded', CASE n % 2 WHEN 0 THEN 'kept' ELSE 'w' END, 't',
			gen_random_uuid(), 1, 'a', 200,
			'{"answer":"' || repeat('x', 200) || '"}', $1, $1, $1::timestamptz + interval '1 day'
		FROM generate_series(1, 2) AS x(t), generate_series(1, $2::int) AS n RETURNING tenant),
	heads AS (
		INSERT INTO pawl.log AS l (tenant, head) SELECT tenant, count(*) FROM done GROUP BY tenant
		ON CONFLICT (tenant) DO UPDATE SET head = l.head + excluded.head RETURNING tenant, head)
	INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
	SELECT h.tenant, h.head - n + 1, 'e', 0, 'w', gen_random_uuid(), 1, 't', 's', $1 FROM heads AS h, generate_series(1, $2::int) AS n`, at, n)
}

// weeks lists the partitions of the outbox.
func weeks(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return ask[string](t, pool, `SELECT coalesce(string_agg(right(c.relname, 7), ' ' ORDER BY c.relname), '') FROM pg_inherits AS i
		JOIN pg_class AS c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'pawl.outbox'::regclass AND EXISTS (SELECT FROM pawl.outbox AS o WHERE o.tableoid = c.oid)`)
}
