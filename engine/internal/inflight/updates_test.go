package inflight

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
)

func TestStartWithLease_NoQueries(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, atOnce)
	n := startAfterLook(t, pool, w, seldom)
	n.Runner.mu.Lock()
	n.pipeline = silent{}
	n.Runner.mu.Unlock()
	r := due("a", leased(n.name, time.Minute))
	for range 1000 {
		eventually(t, "a worker is free", func() bool { return n.Reserve(w.Name, w.Named("run")[0]) })
		n.Updated([]decide.FlightUpdate{r.landed(w)})
	}
	eventually(t, "all are done", func() bool { return n.Stats().Succeeded == 1000 })
	if asked, looked := n.asked.Count(""), n.asked.Count(lookText); asked != looked {
		t.Errorf("%d queries beside the %d looks: %q", asked-looked, looked, n.asked.List())
	}
}

// silent is a pipeline that ends every command without a database.
type silent struct{}

func (silent) Continue(context.Context, *decide.Prepared) (transitions.Receipt, error) {
	return transitions.Receipt{Status: 200}, nil
}

func TestWorkersAreReservedAndReleased(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, atOnce, func(a *activityOfText) { a.Concurrency(2) })
	other := job(t, atOnce)
	step := w.Named("run")[0]
	n := startNode(t, pool, w, workers(3))
	limited := func() bool { return n.Reserve(w.Name, step) }
	got := []bool{limited(), limited(), limited()}
	assert.Truef(t, slices.Equal(got, []bool{true, true, false}), "an activity with a limit of 2: %v", got)
	n.Release(w.Name, step)
	assert.True(t, n.Reserve(w.Name, step), "a worker was not given back")
	free := func() bool { return n.Reserve("free", other.Named("run")[0]) }
	got = []bool{free(), free()}
	assert.Truef(t, slices.Equal(got, []bool{true, false}), "another activity, with the third worker of three: %v", got)
	n.Release(w.Name, step)
	n.Release(w.Name, step)
	n.Release("free", other.Named("run")[0])
	s := n.Stats()
	assert.Equal(t, 0, s.Busy, "busy")
}

// Waiting work is served before new work: a reservation is refused while there is older work.
func TestNewWorkDoesNotOvertakeWhatWaits(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	step := w.Named("run")[0]
	n := startAfterLook(t, pool, w, workers(1), seldom) // no look comes in between
	n.accept(t, w, "first")
	await.Receive(t, "it runs", g.begun)
	waits := due("waits")
	insert(t, pool, waits)
	n.Updated([]decide.FlightUpdate{{InFlight: *decide.FlightOf(&waits.Record, waits.Tenant), Status: transitions.Pending}})
	n.mu.Lock()
	hints := n.hints
	n.mu.Unlock()
	assert.Equal(t, 1, hints, "others were told times of work that waits")
	n.Runner.mu.Lock() // the worker becomes free, and nobody has looked yet
	n.slots.vacate(activity{"job", "run"})
	n.Runner.mu.Unlock()
	assert.False(t, n.Reserve(w.Name, step), "new work got the worker")
	n.Runner.mu.Lock()
	n.slots.take(activity{"job", "run"}, 0)
	n.Runner.mu.Unlock()
	g.tell <- ""
	await.Receive(t, "the one that waited runs", g.begun)
	g.tell <- ""
	eventually(t, "both are done", func() bool { return len(n.ended()) == 2 })
	eventually(t, "workers can be reserved again", func() bool { return n.Reserve(w.Name, step) })
	n.Release(w.Name, step)
}

// A due command that another node's pipeline has begun is found by Wake, long
// before the next look.
func TestAHintIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	n := startAfterLook(t, pool, job(t, atOnce), seldom)
	r := due("a")
	insert(t, pool, r)
	n.Wake()
	becomes(t, pool, r.ref(), "it is done", func(r row) bool { return r.Status == transitions.Succeeded })
}

// lookText is in every look, and in nothing else.
const lookText = "clock_timestamp(), least("

// This test counts what happens while nothing happens, so it must let time go
// by.
func TestAnIdleNodeAsksOncePerSecond(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	insert(t, pool, due("later", scheduled, func(r *row) { r.RunAt = time.Now().Add(time.Hour) }),
		due("elsewhere", leased("other", time.Hour)))
	polled := make(chan time.Time, 1000)
	begun := time.Now()
	n := startNode(t, pool, job(t, atOnce), func(c *Config) {
		c.Clock = clock{c.Clock.Now, func(theirs, sent, received time.Time) {
			d := theirs.Sub(sent)
			assert.Truef(t, d >= -time.Minute && d <= time.Minute && !received.Before(sent),
				"the database says %s at %s to %s", theirs, sent, received)
			polled <- sent
		}}
	})
	last := await.Receive(t, "the first look", polled)
	for looks, prompt := 1, false; looks < 4 || !prompt; looks++ { // a busy machine may be late, but not always
		next := await.Receive(t, "the next look", polled)
		prompt = prompt || next.Sub(last) < lookEvery*3/2
		last = next
	}
	looks := n.asked.Count(lookText)
	most := 1 + int(time.Since(begun)/lookEvery)
	assert.Truef(t, looks <= most, "%d looks in %s", looks, time.Since(begun))
	n.Stop(t.Context())
	if all, looks := n.asked.Count(""), n.asked.Count(lookText); all != looks {
		t.Errorf("%d queries beside the looks: %q", all-looks, n.asked.List())
	}
}

// All workers are busy and more work waits: looking again does not help.
func TestABusyNodeAsksOncePerSecond(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w, workers(2))
	for i := range 10 {
		insert(t, pool, due(fmt.Sprint(i)))
	}
	n.Wake()
	await.Receive(t, "one runs", g.begun)
	await.Receive(t, "both run", g.begun)
	before, since := n.asked.Count(""), time.Now()
	await.Pass("all workers are busy", 2500*time.Millisecond)
	got := n.asked.Count("") - before
	busy := time.Since(since)
	assert.Truef(t, got <= 2*(2+int(busy/lookEvery)), "%d queries in %s: %q", got, busy, n.asked.List())
	for range 10 {
		g.tell <- ""
	}
	eventually(t, "all are done", func() bool { return len(n.ended()) == 10 })
}

// The node of the only locked row does not try again and again.
func TestLockedRowsAreNotPolledInALoop(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	r := due("a")
	insert(t, pool, r)
	unlock := lock(t, pool, r.ref())
	n := startNode(t, pool, job(t, atOnce), workers(1)) // so that one candidate is as many as it asks for
	eventually(t, "it has tried", func() bool { return n.asked.Count("WITH claimed") > 0 })
	before, since := n.Stats().Polls, time.Now()
	await.Pass("the row is locked", 1500*time.Millisecond)
	got := n.Stats().Polls - before
	locked := time.Since(since)
	assert.Truef(t, got <= 16+4*int64(locked/time.Second), "%d looks in %s", got, locked)
	unlock()
	eventually(t, "it is done", func() bool { return len(n.ended()) == 1 })
}
