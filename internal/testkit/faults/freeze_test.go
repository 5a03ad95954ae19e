//go:build unix

package faults

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/transitions"
)

// A node is stopped with SIGSTOP under load, and keeps its connections. The other nodes continue, because no node holds the lock of the log
// while it waits for its client. When the node continues it answers its callers.
func TestFrozenNode_OthersContinue(t *testing.T) {
	t.Parallel()
	pool := database(t)
	freezes := startNode(t, pool)
	e := start(t, pool)
	ctx := underLoad(t)
	target := replay.HTTP("http://"+freezes.address, nil)
	ending := make(chan struct{})
	busy := make(chan struct{}, 1)
	var work sync.WaitGroup
	for caller := range 8 {
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ending:
					return
				default:
				}
				x := fmt.Sprintf("frozen %d-%d", caller, n)
				cs := []transitions.Command{opening(x), onCounter(x, "add", "1", `{"by":1}`)}
				for _, r := range target.SubmitMany(ctx, cs) {
					if r.Err != nil {
						t.Errorf("%s: %v", x, r.Err)
						return
					}
				}
				select {
				case busy <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 5 {
		select {
		case <-busy:
		case <-ctx.Done():
			t.Fatal("nothing was done by the node")
		}
		require.NoError(t, freezes.command.Process.Signal(syscall.SIGSTOP))
		keepBusy(t, ctx, e, 300*time.Millisecond, 50)
		require.NoError(t, freezes.command.Process.Signal(syscall.SIGCONT))
		select {
		case <-busy: // an answer from before
		default:
		}
	}
	close(ending)
	work.Wait()
	wantSound(t, e, pool)
	freezes.end(t)
}
