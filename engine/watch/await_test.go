package watch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// reply is what an Await came to.
type reply struct {
	receipt transitions.Receipt
	err     error
}

// await waits for the end of a command, beside the test.
func (n *node) await(t testing.TB, r transitions.Ref) <-chan reply {
	done := make(chan reply, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		receipt, err := n.Await(ctx, r)
		done <- reply{receipt, err}
	}()
	return done
}

func wantAnswer(t testing.TB, got reply) {
	t.Helper()
	if got.err != nil || got.receipt.Status != 200 || string(got.receipt.Body) != answer || !got.receipt.Replayed {
		t.Errorf("got %+v, %v", got.receipt, got.err)
	}
}

// In the database the command never ends, so that only Ended can tell.
func TestAnEndOnThisNodeNeedsNoRead(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.begin(t, ref("k"))
	ended := transitions.Receipt{Status: 200, Body: []byte(answer)}
	for range 100 {
		done := n.await(t, ref("k"))
		for {
			n.Ended(ref("other"), transitions.Receipt{Status: 500})
			n.Ended(ref("k"), ended)
			select {
			case got := <-done:
				wantAnswer(t, got)
			case <-time.After(time.Millisecond):
				continue
			}
			break
		}
	}
	if reads, _ := n.readsSoFar(); reads > 10 { // where the machine was busy for longer than the patience
		t.Errorf("%d reads", reads)
	}
}

func TestAnEndBeforeTheCallIsFound(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.begin(t, ref("k"))
	n.finish(t, ref("k"))
	n.Ended(ref("k"), transitions.Receipt{Status: 200, Body: []byte(answer)})
	begun := time.Now()
	wantAnswer(t, <-n.await(t, ref("k")))
	t.Logf("it took %s", time.Since(begun))
	if reads, _ := n.readsSoFar(); reads != 1 {
		t.Errorf("%d reads", reads)
	}
}

func TestAnEndOnAnotherNodeIsHeardAndWithoutHintsPolled(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there, quiet := startNode(t, url, false), startNode(t, url, false), startNode(t, url, true)
	here.begin(t, ref("k"))
	here.listening(t, 2)
	heard, polled := there.await(t, ref("k")), quiet.await(t, ref("k"))
	for _, n := range []*node{there, quiet} {
		eventually(t, "it has seen the command in flight", func() bool { reads, _ := n.readsSoFar(); return reads > 0 })
	}
	here.finish(t, ref("k"))
	here.Changed([]transitions.Ref{ref("k")})
	wantAnswer(t, <-heard)
	wantAnswer(t, <-polled)
}

func TestManyWhoWaitShareTheReads(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	list := refs(50)
	n.begin(t, list...)
	var work sync.WaitGroup
	for range 20 {
		for _, r := range list {
			work.Go(func() { wantAnswer(t, <-n.await(t, r)) })
		}
	}
	eventually(t, "every command was read", func() bool { _, commands := n.readsSoFar(); return commands >= len(list) })
	for _, r := range list {
		n.finish(t, r)
	}
	work.Wait()
	if reads, commands := n.readsSoFar(); commands > 10*len(list) {
		t.Errorf("%d reads of %d commands", reads, commands)
	}
}

func TestAwaitSaysWhyThereIsNoAnswer(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	_, err := n.watch(t, ref("nothing")).Next(t.Context())
	wantCode(t, err, workflow.CommandNotFound)
	for range 2 { // whether or not somebody knows already
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err = n.Await(ctx, ref("nothing"))
		wantCode(t, err, workflow.CommandNotFound)
	}

	n.begin(t, ref("slow"), ref("old"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = n.Await(ctx, ref("slow"))
	wantCode(t, err, workflow.TimedOut)

	n.finish(t, ref("old"))
	n.horizon.Store(int64(48 * time.Hour))
	_, err = n.Await(t.Context(), ref("old"))
	wantCode(t, err, workflow.KeyExpired)
}

func TestAwaitOutlastsADatabaseThatIsGone(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.begin(t, ref("k"))
	n.broken.Store(true)
	done := n.await(t, ref("k"))
	eventually(t, "a read has failed", func() bool { reads, _ := n.readsSoFar(); return reads > 0 })
	n.finish(t, ref("k"))
	n.broken.Store(false)
	wantAnswer(t, <-done)
}
