package inflight

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestTimers_ThreeNodes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, atOnce)
	const count = 10_000
	exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, phase, workflow, transition, instance, actor, request,
			attempt, failures, revision, run_at, created_at, updated_at)
		SELECT 't' || n % 3, 'pawl:timer:' || n, '1', decode(repeat('00', 32), 'hex'), 'pending', 'scheduled', 'job', 'expire', gen_random_uuid(),
			'pawl:timer',
			'{"payload":{},"roles":["*"]}', 0, 0, 0, now() + n * interval '100 microseconds', now(), now() FROM generate_series(1, $1) n`, count)
	nodes := []*node{newNode(t, pool, w), newNode(t, pool, w), newNode(t, pool, w)}
	begun := time.Now()
	for _, n := range nodes {
		n.Start()
	}
	eventually(t, "all have fired", func() bool {
		return endedSoFar(nodes...) >= count
	})
	t.Logf("all fired in %s", time.Since(begun).Round(time.Millisecond))
	seen := map[string]bool{}
	for i, n := range nodes {
		for _, p := range n.ended() {
			assert.Falsef(t, seen[p.Scope], "%s fired twice", p.Scope)
			seen[p.Scope] = true
			assert.Equalf(t, 1, p.Resumed.Attempt, "%s fired by attempt", p.Scope)
		}
		t.Logf("node %d: %+v", i, n.Stats())
	}
	assert.Len(t, seen, count, "fired")
}

// The engine's clock jumps; leases know only the database's.
func TestAClockThatJumpsFiresNothingTwice(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n, other := startNode(t, pool, w), startNode(t, pool, w)
	ref := n.accept(t, w, "working")
	await.Receive(t, "it runs", g.begun)
	timer := due("timer", scheduled, func(r *row) { r.RunAt = time.Now().Add(30 * time.Minute) })
	insert(t, pool, timer)
	for _, jump := range []time.Duration{time.Hour, -time.Hour, time.Hour, 0} {
		for _, n := range []*node{n, other} {
			n.set(func(n *node) { n.skew = jump })
			looks := n.Stats().Polls
			eventually(t, "it looks", func() bool { n.Wake(); return n.Stats().Polls > looks+1 })
		}
	}
	becomes(t, pool, timer.ref(), "it has fired", func(r row) bool { return r.Status == transitions.Succeeded })
	got := read(t, pool, ref)
	assert.Truef(t, got.Attempt == 1 && got.ClaimedBy == n.name && time.Until(got.LockedUntil) <= n.config.Lease+time.Second,
		"the lease is %+v", got.Record)
	g.tell <- ""
	eventually(t, "both are done", func() bool { return len(n.ended())+len(other.ended()) == 2 })
	assert.Equal(t, int64(0), n.Stats().TakenOver+other.Stats().TakenOver, "a lease was taken over")
}

// A timer that becomes due between two looks fires then, on a node that was told
// of it, and on one that has only looked.
func TestATimerFiresOnTime(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, atOnce)
	far := due("far", scheduled, func(r *row) { r.RunAt = time.Now().Add(2 * time.Hour) })
	insert(t, pool, far)
	n := startAfterLook(t, pool, w, seldom)
	for _, told := range []bool{true, false} {
		timer := due(fmt.Sprint("told ", told), scheduled, func(r *row) { r.RunAt = time.Now().Add(lookEvery) })
		insert(t, pool, timer)
		if told {
			n.Updated([]decide.FlightUpdate{{InFlight: *decide.FlightOf(&timer.Record, timer.Tenant), Status: transitions.Pending}})
		} else {
			n.Wake()
		}
		got := becomes(t, pool, timer.ref(), "it fires", func(r row) bool { return r.Status == transitions.Succeeded })
		late := got.ClaimedAt.Sub(timer.RunAt)
		assert.Truef(t, late >= -time.Millisecond*100, "told %t: it fired %s late", told, late)
	}
	got := read(t, pool, far.ref())
	assert.Equal(t, 0, got.Attempt, "the other fired too")
}

// It was committed long after it was due: the looks between the ticks do not go
// back so far.
func TestALateTimerIsFoundByTheNextTick(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	n := startNode(t, pool, job(t, atOnce))
	eventually(t, "some looks are made", func() bool { return n.Stats().Polls > 1 })
	late := due("late", scheduled, func(r *row) { r.RunAt = time.Now().Add(-time.Hour) })
	insert(t, pool, late)
	n.Wake()
	eventually(t, "it fires", func() bool { return len(n.ended()) == 1 })
}

func TestScheduled_RetryOrStuck(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, atOnce)
	rows := map[string]row{}
	for _, name := range []string{"paused", "no database", "defect"} {
		rows[name] = due(name, scheduled, func(r *row) { r.Attempt, r.Failures = 4, 4 })
		insert(t, pool, rows[name])
	}
	n := newNode(t, pool, w, newStill().set) // none is due a second time
	n.refuse = func(p *decide.Prepared) error {
		return map[string]error{
			"paused":      workflow.Errorf(workflow.Paused, "paused"),
			"no database": workflow.Errorf(workflow.Unavailable, "no database"),
			"defect":      workflow.Errorf(workflow.Internal, "a defect"),
		}[p.Key]
	}
	n.Start()
	tried := func(r row) bool { return r.Attempt == 5 && r.Status != transitions.Processing }
	got := becomes(t, pool, rows["paused"].ref(), "the paused one is tried", tried)
	assert.Truef(t, got.Status == transitions.Pending && got.Failures == 4, "the paused one is %+v", got.Record)
	got = becomes(t, pool, rows["no database"].ref(), "the unlucky one is tried", tried)
	assert.Truef(t, got.Status == transitions.FailedRetryable && got.Failures == 5 && got.Stuck == "" && !got.RunAt.IsZero(),
		"the unlucky one is %+v", got.Record)
	got = becomes(t, pool, rows["defect"].ref(), "the defective one is tried", tried)
	assert.Truef(t, got.Stuck == "undecidable" && got.Failure == "internal_error: a defect", "the defective one is %+v", got.Record)
}

// Due commands stay unchanged: claiming and releasing each of them repeatedly would cost more than the work. Commands that were asked to
// stop can end.
func TestAPausedWorkflowIsQuiet(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	waits := due("waits", scheduled)
	cancelled := due("cancelled", scheduled, func(r *row) { r.CancelledBy = "bob" })
	elsewhere := due("elsewhere", scheduled, func(r *row) { r.Tenant = "other" })
	working := due("working")
	insert(t, pool, waits, cancelled, elsewhere, working)
	exec(t, pool, "INSERT INTO pawl.paused (tenant, workflow, actor, at) VALUES ('acme', 'job', 'ann', now()), ('acme', 'another', 'ann', "+
		"now())")
	n := startNode(t, pool, job(t, atOnce))
	for _, r := range []row{cancelled, elsewhere, working} {
		becomes(t, pool, r.ref(), r.Key+" ends", func(r row) bool { return r.Phase == "" })
	}
	looks := n.Stats().Polls
	for more := range int64(3) {
		n.Wake()
		eventually(t, "it looks", func() bool { return n.Stats().Polls > looks+more })
	}
	got := read(t, pool, waits.ref())
	assert.Equalf(t, 1, got.Revision, "it is %+v", got.Record)
	exec(t, pool, "DELETE FROM pawl.paused")
	becomes(t, pool, waits.ref(), "it fires", func(r row) bool { return r.Status == transitions.Succeeded })
}
