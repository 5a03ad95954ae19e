package faults

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// Callers with transactions of their own fight for one instance without a
// pause. A command of the pipeline, which does not queue for the lock inside of
// the database, gets its turn all the same, and is not refused as one that waited
// too long.
func TestCommandIsNotStarvedByCallerTransactions(t *testing.T) {
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
					_, err := tx.Exec(ctx, `SELECT pg_sleep(0.03)`) // what the caller does besides
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				added.Add(1)
			}
		})
	}
	await.Eventually(t, "there is a fight", func() bool { return added.Load() > 10 })
	var longest time.Duration
	for n := range 5 {
		began := time.Now()
		if _, err := e.Submit(ctx, onCounter("x", "add", fmt.Sprint("alone ", n), `{"by":1}`)); err != nil {
			t.Errorf("after %v: %v", time.Since(began), err)
			break
		}
		added.Add(1)
		longest = max(longest, time.Since(began))
	}
	close(ending)
	work.Wait()
	t.Logf("%d commands, the longest wait was %v", added.Load(), longest)
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
	for _, tenant := range tenants {
		for i := range names {
			c := opening(fmt.Sprint(i))
			c.Tenant = tenant
			must(t, e, c)
		}
	}
	callers := poolOf(t, pool, 6)
	ctx := underLoad(t)
	var committed, ended atomic.Int64
	var added [2]atomic.Int64
	var work sync.WaitGroup
	for caller := range 6 {
		work.Go(func() {
			for n := range 5 {
				tx, err := callers.Begin(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				// A deadlock lasts a second by default. Superusers can shorten that.
				if _, err := tx.Exec(ctx, `SELECT set_config('deadlock_timeout', '100ms', true)
					FROM pg_roles WHERE rolname = current_user AND rolsuper`); err != nil {
					t.Error(err)
					return
				}
				var in [2]int64
				for k := range 3 {
					which := rand.IntN(2)
					c := onCounter(fmt.Sprint(rand.IntN(names)), "add", fmt.Sprintf("%d-%d-%d", caller, n, k), `{"by":1}`)
					c.Tenant = tenants[which]
					if _, err = e.SubmitTx(ctx, tx, c); err != nil {
						assert.Truef(t, workflow.CodeOf(err).Info().Retry && workflow.CodeOf(err) != workflow.Internal,
							"a deadlock is told as %v", err)
						break
					}
					in[which]++
				}
				if err == nil {
					err = tx.Commit(ctx)
				}
				if err != nil {
					ended.Add(1)
					_ = tx.Rollback(ctx)
					continue
				}
				committed.Add(1)
				added[0].Add(in[0])
				added[1].Add(in[1])
			}
		})
	}
	for caller := range 2 {
		work.Go(func() {
			for n := range 100 {
				c := onCounter(fmt.Sprint(n%names), "add", fmt.Sprintf("alone %d-%d", caller, n), `{"by":1}`)
				c.Tenant = tenants[caller]
				_, err := e.Submit(ctx, c)
				for workflow.CodeOf(err) == workflow.Locked { // the callers' deadlocks last seconds; the key makes asking again safe
					_, err = e.Submit(ctx, c)
				}
				if err != nil {
					t.Errorf("a command of its own: %v", err)
					return
				}
				added[caller].Add(1)
			}
		})
	}
	work.Wait()
	t.Logf("%d transactions were committed, %d ended", committed.Load(), ended.Load())
	for i, tenant := range tenants {
		assert.Equalf(t, added[i].Load(), number(t, pool, `SELECT sum((data->>'n')::int) FROM pawl.instance WHERE tenant = $1`, tenant),
			"tenant %s counted", tenant)
		v, err := e.Admin().Verify(ctx, tenant, [16]byte{})
		assert.Truef(t, err == nil && len(v.Broken) == 0, "tenant %s: %v, %v", tenant, v.Broken, err)
	}
	wantSound(t, e, pool)
}
