package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A caller who submits many commands of one instance and is told to try one of
// them again can do so: none that came after it was done in its place.
func TestRetry_KeepsCallerOrder(t *testing.T) {
	for name, tt := range map[string]struct{ others, group int }{
		"the next groups":        {0, 2},
		"a long list, cut up":    {255, 256},
		"a longer list, cut up":  {1023, 1024},
		"the rest of its group":  {0, 3},
		"after a group of one":   {0, 1},
		"among those of another": {1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overtake(t, tt.others, tt.group)
		})
	}
}

// overtake interrupts the database until the first group of a list has failed. The list has the other commands first, then four of one
// instance.
func overtake(t *testing.T, others, group int) {
	w, entered, open := gated()
	direct := database(t)
	p, pool := startProxy(t, direct, func() fate { return passed })
	e := start(t, pool, func(c *engine.Config) {
		c.Workflows = []workflow.Source{w}
		c.Pipeline.Committers, c.Pipeline.GroupSize, c.Pipeline.Outage = 1, group, 300*time.Millisecond
	})
	must(t, e, opening("x"))
	must(t, e, opening("y"))
	ctx := bounded(t)
	first := submit(ctx, e, onCounter("y", "wait", "first", `{}`))
	<-entered
	var cs []transitions.Command
	for i := range others {
		cs = append(cs, onCounter("y", "add", fmt.Sprint(i), `{"by":1}`))
	}
	for i := range 4 {
		cs = append(cs, onCounter("x", "add", fmt.Sprint(i), `{"by":1}`))
	}
	answers := make(chan []transitions.Reply, 1)
	go func() { answers <- e.SubmitMany(ctx, cs) }()
	await.Eventually(t, "all wait", func() bool { return e.Admin().Stats().Waiting == len(cs) })
	p.setDown(true)
	open()
	<-first
	await.Eventually(t, "the first group was given up", func() bool { return e.Admin().Stats().Waiting <= max(len(cs)-2*group, 0) })
	p.setDown(false)

	replies := (<-answers)[others:]
	for i := 1; i < len(replies); i++ {
		assert.Falsef(t, replies[i-1].Err != nil && replies[i].Err == nil,
			"command %d was done, although %d before it was not: %v", i, i-1, replies[i-1].Err)
	}
	assert.Error(t, replies[0].Err, "the first was done: the test proves nothing")
	retried := e.SubmitMany(ctx, cs)
	for ctx.Err() == nil && unavailable(retried) { // this machine may be slower than an outage may last
		retried = e.SubmitMany(ctx, cs)
	}
	for i, r := range retried[others:] {
		assert.Truef(t, r.Err == nil && r.Receipt.Version == int64(i+2),
			"tried again, command %d made version %d, %v", i, r.Receipt.Version, r.Err)
	}
}

// unavailable reports whether a command failed because of the outage.
func unavailable(replies []transitions.Reply) bool {
	return slices.ContainsFunc(replies, func(r transitions.Reply) bool { return workflow.CodeOf(r.Err) == workflow.Unavailable })
}

// A transition with SQL of its own takes another way through the engine, and
// arrives in its order all the same.
func TestTransitionSQLKeepsOrder(t *testing.T) {
	t.Parallel()
	pool := database(t)
	_, err := pool.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	e := start(t, pool)
	var cs []transitions.Command
	for i := range 50 {
		x := fmt.Sprint("x", i)
		cs = append(cs, opening(x), onCounter(x, "add", "1", `{"by":1}`), onCounter(x, "write", "2", fmt.Sprintf(`{"what":%q}`, x)),
			onCounter(x, "add", "3", `{"by":1}`), onCounter(x, "write", "4", fmt.Sprintf(`{"what":"%s again"}`, x)), onCounter(x, "end", "5", `{}`))
	}
	wrong := map[string]int{}
	for i, r := range e.SubmitMany(bounded(t), cs) {
		if want := int64(i%6 + 1); r.Err != nil {
			wrong[fmt.Sprintf("%s: %v", cs[i].Transition, r.Err)]++
		} else if r.Receipt.Version != want {
			wrong[fmt.Sprintf("%s made version %d, not %d", cs[i].Transition, r.Receipt.Version, want)]++
		}
	}
	for what, n := range wrong {
		t.Errorf("%d times %s", n, what)
	}
	wantSound(t, e, pool)
}

// A group is split to find a command that cannot be stored. A command of the second half does not overtake one of the first half that waits
// for a lock.
func TestSplitGroupKeepsTheOrderOfAnInstance(t *testing.T) {
	t.Parallel()
	w, entered, open := gated()
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) {
		c.Workflows = []workflow.Source{w}
		c.Pipeline.Committers, c.Pipeline.RetryWorkers, c.Pipeline.LockWait = 1, 1, 4*patience
	})
	x := must(t, e, opening("x")).Instance
	z := must(t, e, opening("z")).Instance
	must(t, e, opening("y"))
	ctx := bounded(t)
	aside := wentAside(e)
	// Keeps the retry lane busy.
	releaseZ := hold(t, pool, holdInstance, z)
	busy := submit(ctx, e, onCounter("z", "add", "busy", `{"by":1}`))
	await.Eventually(t, "the lane is busy", func() bool { return aside() > 0 })

	first := submit(ctx, e, onCounter("y", "wait", "first", `{}`))
	<-entered
	releaseX := hold(t, pool, holdInstance, x)
	answers := make(chan []transitions.Reply, 1)
	go func() {
		answers <- e.SubmitMany(ctx, []transitions.Command{
			onCounter("x", "add", "1", `{"by":1}`), onCounter("y", "tag", "poison", `{"tag":"nul"}`), onCounter("x", "add", "2", `{"by":1}`)})
	}()
	await.Eventually(t, "all wait", func() bool { return e.Admin().Stats().Waiting == 3 })
	open()
	<-first
	await.Eventually(t, "the first half waits aside", func() bool { return aside() > 1 })
	releaseX()
	releaseZ()
	replies := <-answers
	if replies[0].Receipt.Version != 2 || replies[2].Receipt.Version != 3 {
		t.Errorf("the commands made the versions %d (%v) and %d (%v), want 2 and 3", replies[0].Receipt.Version, replies[0].Err,
			replies[2].Receipt.Version, replies[2].Err)
	}
	wantDone(t, []<-chan answered{busy})
	wantSound(t, e, pool)
}
