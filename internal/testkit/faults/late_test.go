package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
)

// readLog follows the log from the beginning until it has seen the position,
// and reports everything that is missing, doubled or out of order.
func readLog(ctx context.Context, t testing.TB, e *engine.Engine, until func() int64) {
	f := e.Read().Follow("", 0)
	defer f.Close()
	position := int64(0)
	for position < until() {
		b, err := f.Next(ctx)
		if err != nil {
			t.Errorf("after position %d: %v", position, err)
			return
		}
		for _, event := range b.Events {
			assert.Falsef(t, event.Position != position && event.Position != position+1,
				"after position %d came %d", position, event.Position)
			position = event.Position
		}
	}
}

// A transaction that stays open while thousands commit is not skipped by those
// who read the log meanwhile: its place is where it commits.
func TestLateCommitGetsItsPlaceWhenItCommits(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool)
	must(t, e, opening("late"))
	must(t, e, opening("undone"))
	ctx := underLoad(t)
	const others = 3000
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() { readLog(ctx, t, e, func() int64 { return others + 4 }) })
	}
	late, undone := begin(t, pool, pgx.TxOptions{}), begin(t, pool, pgx.TxOptions{})
	submitTx(t, e, late, onCounter("late", "announce", "1", `{"by":1}`))
	submitTx(t, e, undone, onCounter("undone", "add", "1", `{"by":1}`))
	submitTx(t, e, late, opening("later"))

	var work sync.WaitGroup
	for caller := range 10 {
		work.Go(func() {
			for i := range others / 10 {
				x := fmt.Sprintf("%d-%d", caller, i)
				_, err := e.Submit(ctx, opening(x))
				assert.NoError(t, err)
			}
		})
	}
	work.Wait()
	head, err := e.Read().Head(ctx, "")
	assert.Truef(t, err == nil && head == others+2, "the head is %d, %v while the transactions are open; want %d", head, err, others+2)
	assert.Equal(t, int64(0), number(t, pool, `SELECT count(*) FROM pawl.outbox WHERE position < 0`),
		"provisional positions can be seen")
	require.NoError(t, undone.Rollback(ctx))
	require.NoError(t, late.Commit(ctx))
	readers.Wait()
	r := must(t, e, onCounter("late", "announce", "1", `{"by":1}`))
	assert.Truef(t, r.Replayed && r.Position == others+3,
		"the late command has position %d, replayed %v; want %d", r.Position, r.Replayed, others+3)
	wantSound(t, e, pool)
}

// Many transactions that take their time, some of which are undone, beside
// callers who do not: the log has no gap for anybody at any time.
func TestDawdlersLeaveNoGapInTheLog(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool)
	ctx := underLoad(t)
	callers := poolOf(t, pool, 6)
	ending := make(chan struct{})
	var readers, work sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			readLog(ctx, t, e, func() int64 {
				select {
				case <-ending:
					head, err := e.Read().Head(ctx, "")
					assert.NoError(t, err)
					return head
				default:
					return 1 << 62
				}
			})
		})
	}
	for dawdler := range 6 {
		work.Go(func() {
			for i := range 12 {
				tx, err := callers.Begin(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				for n := range 1 + i%3 {
					x := fmt.Sprintf("dawdler %d-%d-%d", dawdler, i, n)
					if _, err := e.SubmitTx(ctx, tx, opening(x)); err != nil {
						t.Error(err)
					}
					// Time goes by.
					if r, err := e.Submit(ctx, opening(x+" meanwhile")); err != nil || r.Refused() {
						t.Error(err)
					}
				}
				end := tx.Commit
				if i%4 == 3 {
					end = tx.Rollback
				}
				assert.NoError(t, end(ctx))
			}
		})
	}
	work.Wait()
	close(ending)
	must(t, e, opening("last")) // wakes the readers
	readers.Wait()
	wantSound(t, e, pool)
}
