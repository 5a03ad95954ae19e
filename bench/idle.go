package bench

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// These scenarios measure what a node asks of the database for what it has nothing to do
// about. A command of theirs is a query of the node, or a claim.

const (
	idleMany    = 5000    // tenants with a waiter each, or paused instances
	idleBacklog = 100_000 // rows that are due and cannot be taken
)

// Parameter: how many. Each is of a tenant of its own, and of a workflow that the node
// does not know.
const waitedSQL = `
INSERT INTO {pawl}.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request, attempt,
	failures, revision, run_at, created_at, updated_at)
SELECT 'tenant ' || n, 's', 'k', sha256('x'), 'pending', 'working', 'unknown', 'ask', gen_random_uuid(), 'a', '{}', 0, 0, 0,
	now() + n * interval '1 microsecond', now(), now() FROM generate_series(1, $1) AS n`

// Parameters: how many, the workflow, the transition of the timers.
const pausedSQL = `
WITH i AS (
	INSERT INTO {pawl}.instance (tenant, id, workflow, definition, state, version, data, open, paused, chain, created_at, updated_at)
	SELECT 'others', gen_random_uuid(), $2, 1, 'placed', 1, '{}', true, true, sha256('x'), now(), now()
	FROM generate_series(1, $1::int) RETURNING id)
INSERT INTO {pawl}.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request, attempt,
	failures, revision, run_at, created_at, updated_at)
SELECT 'others', 'pawl:timer:' || id, '1', sha256('x'), 'pending', 'scheduled', $2, $3, id, 'pawl:timer', '{"payload":{},"roles":["*"]}',
	0, 0, 0, now() - interval '1 hour', now(), now() FROM i`

// waiting is a node with a waiting caller for a command of each of many tenants. It counts the queries.
func waiting(name string) *scenario {
	return &scenario{name: name, run: func(ctx context.Context, e *env) (*sample, error) {
		if err := e.db.exec(ctx, waitedSQL, idleMany); err != nil {
			return nil, err
		}
		eng, asked, err := e.idleEngine(ctx)
		if err != nil {
			return nil, err
		}
		waits, cancel := context.WithCancel(ctx)
		var work sync.WaitGroup
		e.later(func() error { cancel(); work.Wait(); return nil })
		for i := range idleMany {
			work.Go(func() {
				_, _ = eng.Await(waits, transitions.Ref{Tenant: fmt.Sprint("tenant ", i+1), Scope: "s", Key: "k"})
			})
		}
		return e.watched(ctx, func() int64 { n, _ := asked.since(0); return int64(n) }, asked)
	}}
}

// pausing is a node with many paused instances, each with a timer that is due. It counts
// the claims.
func pausing(name string) *scenario {
	return &scenario{name: name, run: func(ctx context.Context, e *env) (*sample, error) {
		if err := e.db.exec(ctx, pausedSQL, idleMany, workflowName, "close"); err != nil {
			return nil, err
		}
		eng, asked, err := e.idleEngine(ctx)
		if err != nil {
			return nil, err
		}
		err = poll(ctx, 10*time.Millisecond, quietLimit, "not all are set aside", func() (bool, error) {
			return eng.Admin().InFlightStats().Parked == idleMany, nil
		})
		if err != nil {
			return nil, err
		}
		return e.watched(ctx, func() int64 { return eng.Admin().InFlightStats().Claimed }, asked)
	}}
}

// behind is a node with much due work that it cannot take. It counts the polls, and its
// latency is theirs.
func behind(name string) *scenario {
	return &scenario{name: name, run: func(ctx context.Context, e *env) (*sample, error) {
		if err := e.db.exec(ctx, waitedSQL, idleBacklog); err != nil {
			return nil, err
		}
		eng, asked, err := e.idleEngine(ctx)
		if err != nil {
			return nil, err
		}
		return e.watched(ctx, func() int64 { return eng.Admin().InFlightStats().Polls }, asked)
	}}
}

// idleEngine starts an engine whose queries are counted.
func (e *env) idleEngine(ctx context.Context) (*engine.Engine, *queries, error) {
	pool, err := e.db.pool(ctx)
	if err != nil {
		return nil, nil, err
	}
	config, asked := pool.Config().Copy(), &queries{}
	pool.Close()
	config.ConnConfig.Tracer = asked
	if pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, nil, err
	}
	e.later(func() error { pool.Close(); return nil })
	c := engine.Config{Pool: pool, Schema: e.db.schema, Workflows: []workflow.Source{definition}, Log: slog.New(slog.DiscardHandler)}
	c.Retention.Off = true
	eng, err := engine.New(c)
	if err != nil {
		return nil, nil, err
	}
	e.later(func() error { eng.Stop(context.Background()); return nil })
	return eng, asked, eng.Start(ctx)
}

// watched lets the node be, and counts what it does after a time to warm up.
func (e *env) watched(ctx context.Context, count func() int64, asked *queries) (*sample, error) {
	backoff.Sleep(ctx, max(e.Duration/5, time.Second))
	n, _ := asked.since(0)
	before, begun := count(), time.Now()
	backoff.Sleep(ctx, max(e.Duration, 2*time.Second))
	s := &sample{commands: count() - before, took: time.Since(begun)}
	_, took := asked.since(n)
	s.latency = latencyOf(took)
	return s, ctx.Err()
}

// queries are how long each query took.
type queries struct {
	mu   sync.Mutex
	took []time.Duration
}

// since is how many there were, and those after the first n.
func (q *queries) since(n int) (int, []time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.took), append([]time.Duration{}, q.took[n:]...)
}

type begunKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (q *queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, begunKey{}, time.Now())
}

// TraceQueryEnd implements pgx.QueryTracer.
func (q *queries) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	begun, _ := ctx.Value(begunKey{}).(time.Time)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.took = append(q.took, time.Since(begun))
}
