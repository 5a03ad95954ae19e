package inflight

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

// pausedTimers inserts timers that are due, of as many paused instances.
func pausedTimers(t testing.TB, pool *pgxpool.Pool, n int) {
	t.Helper()
	exec(t, pool, `WITH i AS (
			INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, paused, chain, created_at, updated_at)
			SELECT 't' || n % 3, gen_random_uuid(), 'job', 1, 'ready', 1, '{}', true, true, decode(repeat('00', 32), 'hex'), now(), now()
			FROM generate_series(1, $1) n RETURNING tenant, id)
		INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request,
			attempt, failures, revision, run_at, created_at, updated_at)
		SELECT tenant, 'pawl:timer:' || id, '1', decode(repeat('00', 32), 'hex'), 'pending', 'scheduled', 'job', 'expire', id, 'pawl:timer',
			'{"payload":{},"roles":["*"]}', 0, 0, 0, now() - interval '1 hour', now(), now() FROM i`, n)
}

// More are due than one poll takes. They are set aside, and no poll finds them again;
// what is behind them is done.
func TestPausedInstanceIsNotClaimed(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	const held = 2*dueBatch + 10
	pausedTimers(t, pool, held)
	cancelled := due("cancelled", scheduled, func(r *row) { r.CancelledBy = "bob" })
	insert(t, pool, due("free", scheduled), cancelled)
	n := startNode(t, pool, job(t, atOnce))
	eventually(t, "all are set aside, and the others are done", func() bool {
		return n.Stats().Parked == held && len(n.ended()) == 2
	})
	polls := n.Stats().Polls
	eventually(t, "it polls", func() bool { n.Wake(); return n.Stats().Polls > polls+5 })
	s := n.Stats()
	assert.Truef(t, s.Claimed == 2 && s.Parked == held && s.Returned == 0, "%+v", s)
	other := newNode(t, pool, job(t, atOnce))
	list, err := other.findDue(t.Context(), store.PollRequest{Now: n.config.Clock.Now(), Scheduled: dueBatch, Workflows: n.config.Workflows,
		Whole: true})
	assert.Truef(t, err == nil && len(list) == 0, "a poll finds %d, %v", len(list), err)
}

// The end of a pause comes before a deferral or finds what was deferred, so nothing stays deferred.
func TestPause_EndedBeforeDeferral(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	pausedTimers(t, pool, 1)
	workflows := due("of a workflow", scheduled, func(r *row) { r.Tenant = "other" })
	insert(t, pool, workflows)
	exec(t, pool, "INSERT INTO pawl.paused (tenant, workflow, actor, at) VALUES ('other', 'job', 'ann', now())")
	n := newNode(t, pool, job(t, atOnce))
	found, err := n.findDue(t.Context(), store.PollRequest{Now: n.config.Clock.Now(), Scheduled: dueBatch, Workflows: n.config.Workflows,
		Whole: true})
	require.Truef(t, err == nil && len(found) == 2 && found[0].Pause != "" && found[1].Pause != "", "%+v, %v", found, err)
	exec(t, pool, "UPDATE pawl.instance SET paused = false")
	exec(t, pool, "DELETE FROM pawl.paused")
	assert.False(t, n.park(t.Context(), n.config.Clock.Now(), found), "some are set aside")
}

func TestPause_OrderAfterResume(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	const many = resumeBatch + dueBatch
	exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request,
			attempt, failures, revision, run_at, created_at, updated_at, paused)
		SELECT 'acme', 'pawl:timer:' || n, n, decode(repeat('00', 32), 'hex'), 'pending', 'scheduled', 'job', 'expire', $2, 'pawl:timer',
			'{"payload":{},"roles":["*"]}', 0, 0, 0, now() - n * interval '1 second', now(), now(), 'workflow:job' FROM generate_series(1, $1) n`,
		many, uuid.New())
	n := newNode(t, pool, job(t, atOnce), newStill().set)
	n.poller.pauses.seen(&store.PollResult{Ended: [][2]string{{"acme", "job"}}})
	assert.True(t, n.resumePaused(t.Context(), store.PollRequest{Now: n.config.Clock.Now(), Scheduled: dueBatch}), "nothing is due")
	var some, disordered int
	err := pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE before >= run_at) FROM (
			SELECT run_at, lag(run_at) OVER (ORDER BY waits_since) AS before FROM pawl.command WHERE paused IS NULL) AS c`).Scan(&some, &disordered)
	assert.Truef(t, err == nil && some == resumeBatch && disordered <= 0, "of %d %d are out of order, %v", some, disordered, err)
	other := startNode(t, pool, job(t, atOnce)) // which has never seen the pause
	eventually(t, "all have fired", func() bool { return len(other.ended()) == many })
	got := read(t, pool, transitions.Ref{Tenant: "acme", Scope: "pawl:timer:1", Key: "1"})
	assert.Truef(t, got.Status == transitions.Succeeded && got.Attempt == 2, "it is %+v", got.Record)
}
