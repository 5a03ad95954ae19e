package faults

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Callers with transactions of their own compete for one instance without a pause. Commands of the pipeline, which do not wait for the lock
// in the database, still succeed before their lock wait ends.
func TestSubmit_NotStarvedByTransactions(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool)
	must(t, e, opening("x"))
	callers := poolOf(t, pool, 8)
	ctx := underLoad(t)
	ending := make(chan struct{})
	var added atomic.Int64
	var work sync.WaitGroup
	for caller := range 8 {
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ending:
					return
				default:
				}
				err := pgx.BeginFunc(ctx, callers, func(tx pgx.Tx) error {
					if _, err := e.SubmitTx(ctx, tx, onCounter("x", "add", fmt.Sprintf("%d-%d", caller, n), `{"by":1}`)); err != nil {
						return err
					}
					_, err := tx.Exec(ctx, `SELECT pg_sleep(0.03)`) // the caller's own work
					return err
				})
				if !assert.NoError(t, err) {
					return
				}
				added.Add(1)
			}
		})
	}
	await.Eventually(t, "callers compete", func() bool { return added.Load() > 10 })
	for n := range 5 {
		_, err := e.Submit(ctx, onCounter("x", "add", fmt.Sprint("alone ", n), `{"by":1}`))
		if assert.NoError(t, err) {
			added.Add(1)
		}
	}
	close(ending)
	work.Wait()
	assert.Equal(t, added.Load(), number(t, pool, `SELECT (data->>'n')::bigint FROM pawl.instance`), "counted")
	wantSound(t, e, pool)
}

// Transactions of callers lock instances and tenants in any order and deadlock. PostgreSQL aborts one of them. The data stays consistent,
// and the groups of the engine continue.
func TestSubmitTx_Deadlocks(t *testing.T) {
	t.Parallel()
	const names = 4
	pool := database(t)
	e := start(t, pool)
	tenants := []string{"a", "b"}
	on := func(tenant, name, key string) transitions.Command {
		c := onCounter(name, "add", key, `{"by":1}`)
		c.Tenant = tenant
		return c
	}
	retryable := func(err error) bool {
		return workflow.CodeOf(err).Info().Retry && workflow.CodeOf(err) != workflow.Internal
	}
	for _, tenant := range tenants {
		for i := range names {
			c := opening(fmt.Sprint(i))
			c.Tenant = tenant
			must(t, e, c)
		}
	}
	callers := poolOf(t, pool, 6)
	ctx := underLoad(t)
	var added [2]atomic.Int64
	var work sync.WaitGroup
	for caller := range 6 {
		work.Go(func() {
			for n := range 5 {
				tx, err := callers.Begin(ctx)
				if !assert.NoError(t, err) {
					return
				}
				// A deadlock lasts a second by default. Superusers can shorten that.
				_, err = tx.Exec(ctx, `SELECT set_config('deadlock_timeout', '100ms', true)
					FROM pg_roles WHERE rolname = current_user AND rolsuper`)
				assert.NoError(t, err)
				var in [2]int64
				for k := 0; k < 3 && err == nil; k++ {
					which := rand.IntN(2)
					_, err = e.SubmitTx(ctx, tx, on(tenants[which], fmt.Sprint(rand.IntN(names)), fmt.Sprintf("%d-%d-%d", caller, n, k)))
					assert.Truef(t, err == nil || retryable(err), "a deadlock fails with %v", err)
					in[which]++
				}
				if err == nil {
					err = tx.Commit(ctx)
				}
				if err != nil {
					_ = tx.Rollback(ctx)
					continue
				}
				added[0].Add(in[0])
				added[1].Add(in[1])
			}
		})
	}
	for caller := range 2 {
		work.Go(func() {
			for n := range 100 {
				c := on(tenants[caller], fmt.Sprint(n%names), fmt.Sprintf("alone %d-%d", caller, n))
				_, err := e.Submit(ctx, c)
				for workflow.CodeOf(err) == workflow.Locked { // the callers' deadlocks last seconds
					_, err = e.Submit(ctx, c)
				}
				if !assert.NoError(t, err) {
					return
				}
				added[caller].Add(1)
			}
		})
	}
	work.Wait()
	for i, tenant := range tenants {
		assert.Equalf(t, added[i].Load(), number(t, pool, `SELECT sum((data->>'n')::int) FROM pawl.instance WHERE tenant = $1`, tenant),
			"tenant %s counted", tenant)
		v, err := e.Admin().Verify(ctx, tenant, [16]byte{})
		require.NoError(t, err)
		assert.Emptyf(t, v.Broken, "tenant %s", tenant)
	}
	wantSound(t, e, pool)
}
