package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

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

// Slow transactions, some of which roll back, run at the same time as commands of the pipeline. No reader sees a gap in the log.
func TestSlowTransactionsLeaveNoGap(t *testing.T) {
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
