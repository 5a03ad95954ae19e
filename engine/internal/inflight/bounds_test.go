package inflight

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

// plenty inserts n commands that are due, each a millisecond after the one before. what
// is phase, workflow, transition and pause.
func plenty(t testing.TB, pool *pgxpool.Pool, n int, since time.Time, what string) {
	t.Helper()
	exec(t, pool, `INSERT INTO pawl.command (phase, workflow, transition, paused, tenant, scope, key, fingerprint, status, instance, actor,
		request,
			attempt, failures, revision, run_at, created_at, updated_at)
		SELECT `+what+
		`, 't' || n % 3, 'pawl:x:' || n, gen_random_uuid()::text, decode(repeat('00', 32), 'hex'), 'pending', gen_random_uuid(), 'a', '{}',
			0, 0, 0, $1::timestamptz + n * interval '1 millisecond', now(), now() FROM generate_series(1, $2) n`, since, n)
}

// lookAt is a look of a node with free workers whose activity "run" can take so much.
func lookAt(now time.Time, room int) store.PollRequest {
	l := store.PollRequest{Now: now, Works: 20, Scheduled: dueBatch, Workflows: []string{"job"}, Next: now, Full: []string{"job run"},
		Activities: []store.Activity{{Workflow: "job", Name: "rest", Room: 20}}}
	if room > 0 {
		l.Full, l.Activities = nil, append(l.Activities, store.Activity{Workflow: "job", Name: "run", Room: room})
	}
	return l
}

func pagesOf(t testing.TB, pool *pgxpool.Pool, l store.PollRequest) int {
	t.Helper()
	return pgtest.Pages(t, pool, store.PollSQL, append([]any{pgx.QueryExecModeExec}, l.Params()...)...)
}

// Behind an activity that is at its limit, or has room for little, stands however much;
// as much waits for the end of a pause, and is of workflows that this node does not know.
func TestALookReadsNothingThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	now := time.Now()
	pages := map[int][]int{}
	for _, more := range []int{1000, 19000} {
		since := now.Add(-time.Hour)
		plenty(t, pool, more, since, "'working', 'job', 'run', NULL")
		plenty(t, pool, more, since, "'working', 'unknown', 'run', NULL")
		plenty(t, pool, more, since, "'scheduled', 'job', 'expire', 'workflow:job'")
		plenty(t, pool, more, since, "'scheduled', 'job', 'expire', 'instance:' || n")
		plenty(t, pool, more, now.Add(time.Hour), "'scheduled', 'job', 'expire', NULL") // not due yet
		if more == 1000 {
			plenty(t, pool, 5, since, "'working', 'job', 'rest', NULL")
			plenty(t, pool, 5, since, "'scheduled', 'job', 'expire', NULL")
			exec(t, pool, "INSERT INTO pawl.paused (tenant, workflow, actor, at) SELECT 't' || n, 'job', 'ann', now() FROM generate_series(0, 2) n")
			exec(t, pool, "DELETE FROM pawl.paused WHERE tenant = 't0'") // one has ended
		}
		exec(t, pool, "VACUUM ANALYZE pawl.command")
		for _, l := range []store.PollRequest{lookAt(now, 0), lookAt(now, 1),
			{Now: now, Works: 20, Turns: store.Turns{Most: 100}, Full: []string{"job run"}, Workflows: []string{"job"}},
			{Now: now, Scheduled: 10, Later: store.Turns{Most: 100}, Workflows: []string{"job"}},
			{Now: now, Scheduled: dueBatch, Workflows: []string{"job"}, Whole: true}} {
			pages[more] = append(pages[more], pagesOf(t, pool, l))
		}
	}
	t.Logf("pages: %v", pages)
	for i, few := range pages[1000] {
		if many := pages[19000][i]; many > few+few/2+10 { // an index may be a page higher
			t.Errorf("look %d reads %d pages with twenty times as much behind, and %d before", i, many, few)
		}
	}
}

// Claimed rows stay in the indexes while an older snapshot exists.
func TestPoll_OldSnapshot(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	old, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = old.Rollback(context.Background()) }()
	_, err = old.Exec(t.Context(), "SELECT count(*) FROM pawl.command")
	require.NoError(t, err)
	now := time.Now()
	var before, whole []int
	for _, more := range []int{500, 9500} {
		plenty(t, pool, more, now.Add(-time.Hour), "'working', 'job', 'run', NULL")
		plenty(t, pool, more, now.Add(-time.Hour), "'scheduled', 'job', 'expire', NULL")
		plenty(t, pool, more, now.Add(time.Minute), "'scheduled', 'job', 'expire', NULL") // disarmed before they are due
		exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request,
				attempt, failures, revision, claimed_by, claimed_at, locked_until, created_at, updated_at)
			SELECT 't' || n % 3, 'pawl:x:' || n, gen_random_uuid()::text, decode(repeat('00', 32), 'hex'), 'processing', 'working', 'job', 'run',
				gen_random_uuid(), 'a', '{}', 1, 0, 0, 'n', now(), now() - interval '1 minute', now(), now() FROM generate_series(1, $1) n`, more)
		exec(t, pool, "DELETE FROM pawl.command")
		exec(t, pool, "ANALYZE pawl.command")
		l := lookAt(now, 20)
		whole = append(whole, pagesOf(t, pool, l))
		b := bounds{whole: now.Add(time.Hour)}
		b.begin(&l, false)
		b.found(l, &store.PollResult{Clock: now}, 0)
		b.begin(&l, false)
		l.Next = never
		before = append(before, pagesOf(t, pool, l))
	}
	t.Logf("pages of the next look: %v; of a whole one: %v", before, whole)
	assert.Truef(t, before[1] <= before[0]+10 && before[1] <= 60,
		"a look reads %d pages after 20 times as many commands, and %d before", before[1], before[0])
}

func TestAPollBeginsWhereTheLastHasEnded(t *testing.T) {
	now := time.Now()
	run, rest := activity{"job", "run"}, activity{"job", "rest"}
	activities := func() []store.Activity {
		return []store.Activity{{Workflow: "job", Name: "run", Room: 1}, {Workflow: "job", Name: "rest", Room: 1}}
	}
	var b bounds
	poll := func(at time.Time, tick bool, found ...store.Candidate) store.PollRequest {
		q := store.PollRequest{Now: at, Works: 2, Scheduled: 1, Activities: activities()}
		b.begin(&q, tick)
		b.found(q, &store.PollResult{Clock: at, Found: found}, time.Second)
		return q
	}
	if q := poll(now, true); !q.Whole || !q.Since.IsZero() {
		t.Errorf("the first is %+v", q)
	}
	old := now.Add(-time.Hour)
	work := store.Candidate{Workflow: "job", Transition: "run", Phase: transitions.Working, Since: old}
	q := poll(now.Add(time.Second), true, work, store.Candidate{Phase: transitions.Scheduled, Since: old.Add(1)},
		store.Candidate{Kind: store.Lapsed, Since: old.Add(2)})
	end := now.Add(-lateness)
	assert.Truef(t, !q.Whole && q.Since.Equal(end) && q.Lapsed.Equal(end) && q.Oldest.Equal(end) && q.Activities[0].Since.Equal(end),
		"the second, too soon for a whole one, is %+v", q)
	assert.Truef(t, b.later.Equal(old.Add(1)) && b.lapsed.Equal(old.Add(2)) && b.work[run].Equal(old) &&
		b.work[rest].Equal(now.Add(time.Second-lateness)) && b.oldest().Equal(old), "what is found stays in sight: %+v", b)
	poll(now.Add(2*time.Second), false, work, work)
	assert.True(t, b.work[rest].Equal(now.Add(time.Second-lateness)), "what may be behind is passed")
	assert.True(t, poll(now.Add(-time.Minute), false).Whole, "the clock has jumped back, and it is not whole")
	wait := time.Until(b.whole)
	assert.Truef(t, wait > 0 && wait <= wholeShare*time.Second, "the next whole one is in %s", wait)
}
