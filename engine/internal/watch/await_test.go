package watch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
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
	assert.Truef(t, got.err == nil && got.receipt.Status == 200 && string(got.receipt.Body) == answer && got.receipt.Replayed,
		"got %+v, %v", got.receipt, got.err)
}

// polls is how many polls there can have been since then.
func polls(then time.Time) int { return int(time.Since(then)/time.Second) + 2 }

// In the database the command never ends, so that only Ended can tell.
func TestAnEndOnThisNodeNeedsNoRead(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.begin(t, ref("k"))
	ended := transitions.Receipt{Status: 200, Body: []byte(answer)}
	const patience = 20 * time.Millisecond // before Await reads
	slow, first := 0, time.Now()
	for quick := 0; quick < 50 && time.Since(first) < limit; {
		begun := time.Now()
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
		if time.Since(begun) < patience {
			quick++
		} else { // the machine was busy
			slow++
		}
	}
	reads, _ := n.readsSoFar()
	assert.Truef(t, reads <= slow+polls(first), "%d reads, though %d ends came late", reads, slow)
}

func TestAwait_OtherNode(t *testing.T) {
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
