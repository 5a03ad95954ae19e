package faults

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// waiting is a workflow whose instances are reminded once and then wait.
var waiting = workflow.Define("waiting", 1,
	workflow.Start("open", "open", func(*workflow.Call, *struct{}, workflow.None) error { return nil }),
	workflow.On("remind", workflow.From("open"), "reminded", func(*workflow.Call, *struct{}, workflow.None) error { return nil }),
	workflow.On("close", workflow.From("open", "reminded"), "closed", func(*workflow.Call, *struct{}, workflow.None) error { return nil }),
).Final("closed").After("reminder", workflow.From("open"), time.Hour, "remind")

// skew is a clock that can be set, as all nodes see it.
type skew struct{ by atomic.Int64 }

func (s *skew) now() time.Time       { return time.Now().Add(time.Duration(s.by.Load())) }
func (s *skew) skip(d time.Duration) { s.by.Add(int64(d)) }

// Ten thousand timers are due in the same second, and three nodes fire them.
// Then the clock jumps back and forth over their time.
func TestEveryTimerFiresOnceOnThreeNodes(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	pool := database(t)
	clock := &skew{}
	var nodes []*engine.Engine
	for range 3 {
		nodes = append(nodes, start(t, pool, func(c *engine.Config) {
			c.Workflows, c.Now = []workflow.Source{waiting}, clock.now
		}))
	}
	const timers = 10_000
	open := make([]transitions.Command, timers)
	for i := range open {
		open[i] = transitions.Command{Workflow: "waiting", Transition: "open", Key: fmt.Sprint(i)}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	for _, r := range nodes[0].SubmitMany(ctx, open) {
		require.NoError(t, r.Err)
	}
	fired := func() (n int) {
		require.NoError(t, pool.QueryRow(ctx, `SELECT count(*) FROM pawl.audit WHERE transition = 'remind'`).Scan(&n))
		return n
	}
	assert.Equal(t, 0, fired(), "timers fired an hour early")
	clock.skip(time.Hour)
	begun := time.Now()
	for tick := time.NewTicker(20 * time.Millisecond); fired() < timers && ctx.Err() == nil; <-tick.C {
	}
	t.Logf("%d timers fired in %s", fired(), time.Since(begun))
	for _, jump := range []time.Duration{-time.Hour, time.Hour, time.Hour, -2 * time.Hour, 2 * time.Hour} {
		clock.skip(jump)
		looks := map[*engine.Engine]int64{} // of which one may have begun before
		for _, e := range nodes {
			looks[e] = e.Admin().InFlightStats().Polls
		}
		must(t, nodes[1], transitions.Command{Workflow: "waiting", Transition: "open", Key: fmt.Sprint("after ", clock.by.Load(), jump)})
		waitUntil(t, "every node has looked, by this clock", func() bool {
			return !slices.ContainsFunc(nodes, func(e *engine.Engine) bool { return e.Admin().InFlightStats().Polls < looks[e]+2 })
		})
	}
	waitUntil(t, "no timer is left behind", func() bool {
		return number(t, pool, `SELECT count(*) FROM pawl.command WHERE phase IS NOT NULL AND run_at <= $1`, clock.now()) == 0
	})
	var instances, once int
	require.NoError(t, pool.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE n = 1)
		FROM (SELECT count(*) AS n FROM pawl.audit WHERE transition = 'remind' GROUP BY instance) fired`).Scan(&instances, &once))
	assert.Truef(t, instances >= timers && once == instances, "the timers of %d instances fired, of %d once", instances, once)
	wantSound(t, nodes[0], pool)
}
