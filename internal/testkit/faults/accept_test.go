package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type parcel struct{}

// The answer to the commit of an accept is lost. Its attempt has not begun: it is
// begun without waiting for the lease, once, and no person is asked.
func TestAnAcceptWhoseCommitWasNotHeardIsBegun(t *testing.T) {
	t.Parallel()
	acceptUnheard(t, false)
}

// So it is when the database is away for longer than a command waits, and its caller got an error.
func TestAnAcceptNotHeardInALongOutageIsBegun(t *testing.T) {
	t.Parallel()
	acceptUnheard(t, true)
}

// acceptUnheard loses the answer to an accept, which its caller asks for again if it is given up.
func acceptUnheard(t *testing.T, givenUp bool) {
	direct := database(t)
	var cut atomic.Bool
	_, pool := startProxy(t, direct, func() fate {
		if cut.CompareAndSwap(true, false) {
			return unheard
		}
		return passed
	})
	var attempts atomic.Int64
	nothing := func(*workflow.Call, *parcel, workflow.None) error { return nil }
	w := workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", nothing),
		workflow.Do("send", workflow.From("packed"), "sending", "sent",
			func(context.Context, *workflow.Attempt, parcel, workflow.None) (workflow.None, error) {
				attempts.Add(1)
				return workflow.None{}, nil
			}, nothing).
			OrElse("packed", func(*workflow.Call, *parcel, workflow.Failure) error { return nil }).AskOperator(),
	).Final("sent")
	e := start(t, pool, func(c *engine.Config) {
		c.Workflows, c.InFlight.Lease = []workflow.Source{w}, time.Hour
		if givenUp {
			c.Pipeline.Outage = time.Nanosecond
		}
	})
	ctx := underLoad(t)
	for i := 0; ; i++ { // somebody else's commit may be the one that is not heard
		packed := must(t, e, transitions.Command{Workflow: "parcel", Transition: "pack", Key: fmt.Sprint("pack ", i)})
		attempts.Store(0)
		send := transitions.Command{Workflow: "parcel", Transition: "send", Key: fmt.Sprint("send ", i), Instance: packed.Instance}
		cut.Store(true)
		accepted, err := e.Submit(ctx, send)
		lost := err != nil
		if lost && givenUp && workflow.CodeOf(err) == workflow.Unavailable {
			accepted, err = e.Submit(ctx, send)
		}
		require.NoError(t, err)
		r, err := e.Await(ctx, transitions.Ref{Scope: accepted.Record.Scope, Key: send.Key})
		require.Truef(t, err == nil && r.Err() == nil, "number %d: %+v, %v", i, r, err)
		c, err := e.Read().Command(ctx, transitions.Ref{Scope: accepted.Record.Scope, Key: send.Key})
		assert.Truef(t, err == nil && c.Failures == 0 && attempts.Load() == 1, "%d attempts began; %+v, %v", attempts.Load(), c, err)
		if lost == givenUp && (lost || accepted.Replayed) { // it was asked for again
			break
		}
	}
	wantSound(t, e, direct)
}
