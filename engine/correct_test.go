package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A correction is a transition: audited, with its timers, and within what the definition allows.
func TestAnOperatorCorrectsOneInstance(t *testing.T) {
	t.Parallel()
	pool, e := started(t, running(claims2(pays)))
	id := file(t, e, "", "1", 5).Instance
	correct := func(key string, o transitions.Operation) (transitions.Receipt, error) {
		o.Action, o.Reason = transitions.Correct, "a clerk erred"
		return e.Admin().Operate(t.Context(), transitions.Command{Instance: id, Key: key, Actor: "ann"}, o)
	}
	receipt, after, err := e.Admin().DryRunOperation(t.Context(), transitions.Command{Instance: id},
		transitions.Operation{Action: transitions.Correct, Reason: "x", State: "held", Data: []byte(`{"cents":7}`)})
	assert.Truef(t, err == nil && receipt.Err() == nil && after.State == "held" && string(after.Data) == `{"cents":7}`,
		"%+v, %+v, %v", receipt, after, err)
	if inst, err := e.Read().Instance(t.Context(), "", id); err != nil || inst.Version != 1 {
		t.Errorf("the dry run has written: %+v, %v", inst, err)
	}
	first, err := correct("a", transitions.Operation{State: "held", Data: []byte(`{"cents":200000}`)})
	require.Truef(t, err == nil && first.Err() == nil, "%+v, %v", first, err)
	inst, err := e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.State == "held" && string(inst.Data) == `{"cents":200000}` && inst.Attributes["large"] == "yes",
		"%+v, %v", inst, err)
	n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE starts_with(scope, 'pawl:timer') AND phase = 'scheduled'")
	assert.Truef(t, n == 1, "%d timers run, want that of the state", n)
	rows, err := e.Read().History(t.Context(), "", id, 1, 10)
	assert.Truef(t, err == nil && len(rows) == 1 && rows[0].Transition == "pawl.corrected" && rows[0].Actor == "ann" &&
		rows[0].Reason == "a clerk erred" && rows[0].Cause == transitions.CausedByOperator, "%+v, %v", rows, err)
	again, err := correct("a", transitions.Operation{State: "held", Data: []byte(`{"cents":200000}`)})
	assert.Truef(t, err == nil && again.Replayed && string(again.Body) == string(first.Body), "%+v, %v", again, err)
	for _, state := range []workflow.State{"settling", "nowhere"} {
		r, err := correct(string(state), transitions.Operation{State: state})
		assert.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.CorrectionRefused, "%s: %+v, %v", state, r, err)
	}
	for _, data := range []string{`{"euros":1}`, `{"cents":"many"}`} {
		wantCode(t, errOf(correct(data, transitions.Operation{Data: []byte(data)})), workflow.InvalidPayload)
	}
	wantCode(t, errOf(e.Admin().Operate(t.Context(), transitions.Command{Instance: id, Key: "n"},
		transitions.Operation{Action: transitions.Correct, State: "held"})), workflow.InvalidRequest) // no reason
	wantIntact(t, e, "")
}

// Operations accept the options of commands or refuse them.
func TestOperation_IfVersion(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := bothClaims(t, pool)
	id := file(t, e, "", "1", 5).Instance
	ops := []transitions.Operation{{Action: transitions.Pause}, {Action: transitions.Resume},
		{Action: transitions.Correct, Data: []byte(`{"sum":7}`), Reason: "a clerk erred"}, {Action: transitions.Migrate, To: 2}}
	for n, o := range ops {
		c := transitions.Command{Instance: id, Key: string(o.Action), Options: transitions.Options{IfVersion: 9}}
		dry, after, err := e.Admin().DryRunOperation(t.Context(), c, o)
		assert.Truef(t, err == nil && workflow.CodeOf(dry.Err()) == workflow.VersionConflict && after == nil, "%s: %+v, %v", o.Action, dry, err)
		for range 2 { // it is decided, and replayed
			r, err := e.Admin().Operate(t.Context(), c, o)
			assert.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.VersionConflict, "%s: %+v, %v", o.Action, r, err)
		}
		later, before := c, c
		later.NotBefore, before.HappenedAt = time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
		for _, c := range []transitions.Command{later, before} {
			c.IfVersion = 0
			wantCode(t, errOf(e.Admin().Operate(t.Context(), c, o)), workflow.InvalidRequest)
			_, _, err = e.Admin().DryRunOperation(t.Context(), c, o)
			wantCode(t, err, workflow.InvalidRequest)
		}
		c.Key, c.IfVersion = c.Key+" at the right version", int64(n+1)
		operate(t, e, c, o)
		c.Key = "once more: " + c.Key // there is another version by now
		r, err := e.Admin().Operate(t.Context(), c, o)
		assert.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.VersionConflict, "%s: %+v, %v", o.Action, r, err)
	}
	other := file(t, e, "", "2", 5).Instance
	submit(t, e, onClaim(other, "hold", "h"))
	wantCode(t, errOf(e.Admin().Operate(t.Context(), transitions.Command{Key: "r", Options: transitions.Options{IfVersion: 1}},
		transitions.Operation{Action: transitions.Retry,
			Target: transitions.CommandRef{Scope: "claim:" + other.String(), Key: "h"}})), workflow.InvalidRequest)
}

// An operator may put an instance into a state whose timer has passed: the answer and the dry run say that it fires at once.
func TestACorrectionTellsOfTimersThatAreOverdue(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	e := newEngine(t, pool, running(appointments(1, "open", 0)), clock.set)
	begun := clock.Now().Truncate(time.Second)
	r := submit(t, e, transitions.Command{Workflow: "appointment", Transition: "arrange", Key: "1",
		Payload: fmt.Appendf(nil, `{"at":%q}`, begun.Add(48*time.Hour).Format(time.RFC3339))})
	past := begun.Add(-time.Hour).Format(time.RFC3339)
	c := transitions.Command{Instance: r.Instance, Key: "c"}
	o := transitions.Operation{Action: transitions.Correct, Data: fmt.Appendf(nil, `{"at":%q}`, past), Reason: "it was yesterday"}
	dry, _, err := e.Admin().DryRunOperation(t.Context(), c, o)
	require.NoError(t, err)
	done, err := e.Admin().Operate(t.Context(), c, o)
	require.NoError(t, err)
	for _, r := range []transitions.Receipt{dry, done} {
		result, err := r.Result()
		require.Truef(t, err == nil && len(result.Overdue) == 3, "%s, %v", r.Body, err)
		for _, timer := range result.Overdue {
			assert.Truef(t, timer.Due.Format(time.RFC3339) == past && !timer.Fires.Before(begun) && timer.Transition == "ring", "%+v", timer)
		}
	}
}

// The activity in flight is asked to stop, as after any other transition.
func TestACorrectionTakesAnInstanceOutOfAnActivity(t *testing.T) {
	t.Parallel()
	pool := database(t)
	going, held := busyWork()
	e := newEngine(t, pool, running(claims2(held)))
	id := file(t, e, "", "1", 5).Instance
	submit(t, e, onClaim(id, "approve", "a"))
	work := submit(t, e, onClaim(id, "pay", "p"))
	<-going
	operate(t, e, transitions.Command{Instance: id, Key: "c"},
		transitions.Operation{Action: transitions.Correct, State: "checking", Reason: "not approved"})
	answer, err := e.Await(t.Context(), transitions.Ref{Scope: work.Record.Scope, Key: "p"})
	assert.Truef(t, err == nil && workflow.CodeOf(answer.Err()) == workflow.CommandCancelled, "%+v, %v", answer, err)
	inst, err := e.Read().Instance(t.Context(), "", id)
	assert.Truef(t, err == nil && inst.State == "checking" && inst.Links.InFlight == nil, "%+v, %v", inst, err)
	wantIntact(t, e, "")
}

// busyWork is an activity that reports when it starts, and ends when it is told to.
func busyWork() (going chan struct{}, work func(context.Context) error) {
	going = make(chan struct{}, 10)
	return going, func(ctx context.Context) error {
		going <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
}
