package faults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The answer to the commit of a claim is lost. Its attempt has not begun: the command
// is given back and begun without waiting for the lease, once, and no person is asked.
func TestAClaimWhoseCommitWasNotHeardIsGivenBack(t *testing.T) {
	t.Parallel()
	claimUnheard(t, 1)
}

// So it is when the node cannot ask at once what became of the claim: it asks again.
func TestAClaimNotHeardInAnOutageIsGivenBack(t *testing.T) {
	t.Parallel()
	claimUnheard(t, 3)
}

// claimUnheard loses the answer to a claim, and then the node's questions, until so
// many messages are lost.
func claimUnheard(t *testing.T, lost int64) {
	direct := database(t)
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
	of := func(c *engine.Config) { c.Workflows, c.InFlight.Lease = []workflow.Source{w}, time.Hour }
	accepts := start(t, direct, of, func(c *engine.Config) { c.InFlight.Workers = -1 }) // so that the other one claims
	var p *proxy
	p, pool := startProxy(t, direct, func() fate {
		if n := p.lost.Load(); 0 < n && n < lost {
			return unsent
		}
		return passed
	})
	claim := "WITH claimed AS"
	p.doomed.Store(&claim)
	works := start(t, pool, of)

	ctx := underLoad(t)
	packed := must(t, accepts, transitions.Command{Workflow: "parcel", Transition: "pack", Key: "pack"})
	sent := must(t, accepts, transitions.Command{Workflow: "parcel", Transition: "send", Key: "send", Instance: packed.Instance})
	if r, err := accepts.Await(ctx, transitions.Ref{Scope: sent.Record.Scope, Key: "send"}); err != nil || r.Err() != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	c, err := accepts.Read().Command(ctx, transitions.Ref{Scope: sent.Record.Scope, Key: "send"})
	assert.Truef(t, err == nil && c.Failures == 0 && c.Attempt == 2 && attempts.Load() == 1 && p.lost.Load() == lost,
		"%d attempts began, %d answers were lost; %+v, %v", attempts.Load(), p.lost.Load(), c, err)
	wantSound(t, works, direct)
}
