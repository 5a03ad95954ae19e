package faults

import (
	"errors"
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

// A caller submits many commands of one instance, and some fail with a retryable error. No later command was executed in their place.
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
	unavailable := func(r transitions.Reply) bool { return workflow.CodeOf(r.Err) == workflow.Unavailable }
	for ctx.Err() == nil && slices.ContainsFunc(retried, unavailable) { // a slow machine needs longer than an outage may last
		retried = e.SubmitMany(ctx, cs)
	}
	for i, r := range retried[others:] {
		assert.NoErrorf(t, r.Err, "retry of command %d", i)
		assert.Equalf(t, int64(i+2), r.Receipt.Version, "version of command %d", i)
	}
}

// A group is split to find a command that cannot be stored. A command of the second half does not overtake one of the first half that waits
// for a lock.
func TestSplitGroup_KeepsInstanceOrder(t *testing.T) {
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
	require.NoError(t, errors.Join(replies[0].Err, replies[2].Err))
	assert.Equal(t, []int64{2, 3}, []int64{replies[0].Receipt.Version, replies[2].Receipt.Version})
	wantDone(t, []<-chan answered{busy})
	wantSound(t, e, pool)
}
