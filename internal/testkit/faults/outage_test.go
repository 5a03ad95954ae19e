package faults

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The database is repeatedly unavailable under load. Callers only wait, and commands with and without SQL of their own keep their order.
func TestShortOutage_CallersWait(t *testing.T) {
	t.Parallel()
	direct := database(t)
	_, err := direct.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	p, pool := startProxy(t, direct, func() fate { return passed })
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.Outage = 4 * patience }) // so that these are short
	ctx := underLoad(t)
	var done atomic.Int64
	var work sync.WaitGroup
	ending := make(chan struct{})
	for caller := range 8 {
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ending:
					return
				default:
				}
				x := fmt.Sprintf("%d-%d", caller, n)
				cs := []transitions.Command{opening(x), onCounter(x, "add", "1", `{"by":1}`),
					onCounter(x, "write", "2", fmt.Sprintf(`{"what":%q}`, x)), onCounter(x, "add", "3", `{"by":1}`)}
				for i, r := range e.SubmitMany(ctx, cs) {
					if r.Err != nil || r.Receipt.Version != int64(i+1) {
						t.Errorf("%s %s: version %d, %v", x, cs[i].Transition, r.Receipt.Version, r.Err)
						return
					}
				}
				done.Add(1)
			}
		})
	}
	for range 3 {
		before := done.Load()
		await.Eventually(t, "there is load", func() bool { return done.Load() > before+20 })
		lost := e.Admin().Stats().Lost
		p.setDown(true)
		await.Eventually(t, "the engine noticed", func() bool { return e.Admin().Stats().Lost > lost })
		await.Pass("the outage lasts", 500*time.Millisecond)
		p.setDown(false)
	}
	last := done.Load()
	await.Eventually(t, "there is load again", func() bool { return done.Load() > last+20 })
	close(ending)
	work.Wait()
	assert.Equal(t, done.Load(), number(t, direct, `SELECT count(*) FROM ledger`), "rows in the ledger were answered")
	wantSound(t, e, direct)
}

// An outage that is longer than the configured limit fails commands with a retryable error. Afterwards the engine continues by itself.
func TestLongOutage_CallersGetError(t *testing.T) {
	t.Parallel()
	direct := database(t)
	p, pool := startProxy(t, direct, func() fate { return passed })
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.Outage = 300 * time.Millisecond })
	must(t, e, opening("x"))
	ctx := bounded(t)
	p.setDown(true)
	c := onCounter("x", "add", "1", `{"by":1}`)
	_, err := e.Submit(ctx, c)
	wantCode(t, "the outage", err, workflow.Unavailable)
	err = e.Ready(ctx)
	assert.Equalf(t, workflow.Unavailable, workflow.CodeOf(err), "ready: %v", err)
	p.setDown(false)
	r, err := e.Submit(ctx, c)
	for ctx.Err() == nil && workflow.CodeOf(err) == workflow.Unavailable { // this machine may be slower than an outage may last
		r, err = e.Submit(ctx, c)
	}
	require.NoError(t, errors.Join(err, r.Err()), "after the outage")
	assert.False(t, r.Replayed)
	wantSound(t, e, direct)
}
