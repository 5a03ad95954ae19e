package engine_test

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A correction is a transition: audited, with its timers, and within what the definition allows.
func TestAnOperatorCorrectsOneInstance(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool, running(claims2(pays)))
	id := file(t, e, "", "1", 5).Instance
	correct := func(key string, o transitions.Operation) (transitions.Receipt, error) {
		o.Action, o.Reason = transitions.Correct, "a clerk erred"
		return e.Operate(t.Context(), transitions.Command{Instance: id, Key: key, Actor: "ann"}, o)
	}
	receipt, after, err := e.DryRunOperation(t.Context(), transitions.Command{Instance: id},
		transitions.Operation{Action: transitions.Correct, Reason: "x", State: "held", Data: []byte(`{"cents":7}`)})
	if err != nil || receipt.Err() != nil || after.State != "held" || string(after.Data) != `{"cents":7}` {
		t.Errorf("%+v, %+v, %v", receipt, after, err)
	}
	if inst, err := e.Instance(t.Context(), "", id); err != nil || inst.Version != 1 {
		t.Errorf("the dry run has written: %+v, %v", inst, err)
	}
	first, err := correct("a", transitions.Operation{State: "held", Data: []byte(`{"cents":200000}`)})
	if err != nil || first.Err() != nil {
		t.Fatalf("%+v, %v", first, err)
	}
	inst, err := e.Instance(t.Context(), "", id)
	if err != nil || inst.State != "held" || string(inst.Data) != `{"cents":200000}` || inst.Attributes["large"] != "yes" {
		t.Errorf("%+v, %v", inst, err)
	}
	if n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE starts_with(scope, 'pawl:timer') AND phase = 'scheduled'"); n != 1 {
		t.Errorf("%d timers run, want that of the state", n)
	}
	rows, err := e.History(t.Context(), "", id, 1, 10)
	if err != nil || len(rows) != 1 || rows[0].Transition != "pawl.corrected" || rows[0].Actor != "ann" || rows[0].Reason != "a clerk erred" ||
		rows[0].Cause != transitions.CausedByOperator {
		t.Errorf("%+v, %v", rows, err)
	}
	if again, err := correct("a", transitions.Operation{State: "held", Data: []byte(`{"cents":200000}`)}); err != nil || !again.Replayed ||
		string(again.Body) != string(first.Body) {
		t.Errorf("%+v, %v", again, err)
	}
	for _, state := range []workflow.State{"settling", "nowhere"} {
		if r, err := correct(string(state), transitions.Operation{State: state}); err != nil ||
			workflow.CodeOf(r.Err()) != workflow.CorrectionRefused {
			t.Errorf("%s: %+v, %v", state, r, err)
		}
	}
	for _, data := range []string{`{"euros":1}`, `{"cents":"many"}`} {
		_, err := correct(data, transitions.Operation{Data: []byte(data)})
		wantCode(t, err, workflow.InvalidPayload)
	}
	_, err = e.Operate(t.Context(), transitions.Command{Instance: id, Key: "n"},
		transitions.Operation{Action: transitions.Correct, State: "held"})
	wantCode(t, err, workflow.InvalidRequest) // no reason
	wantIntact(t, e, "")
}

// Who is put into another state while an activity is in flight: the activity is asked to stop, as for any other transition.
func TestACorrectionTakesAnInstanceOutOfAnActivity(t *testing.T) {
	t.Parallel()
	pool := database(t)
	going, held := busyWork()
	e := newEngine(t, pool, running(claims2(held)))
	id := file(t, e, "", "1", 5).Instance
	submit(t, e, onClaim(id, "approve", "a"))
	work := submit(t, e, onClaim(id, "pay", "p"))
	<-going
	r, err := e.Operate(t.Context(), transitions.Command{Instance: id, Key: "c"},
		transitions.Operation{Action: transitions.Correct, State: "checking", Reason: "not approved"})
	if err != nil || r.Err() != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	answer, err := e.Await(t.Context(), "", work.Record.Scope, "p")
	if err != nil || workflow.CodeOf(answer.Err()) != workflow.CommandCancelled {
		t.Errorf("%+v, %v", answer, err)
	}
	if inst, err := e.Instance(t.Context(), "", id); err != nil || inst.State != "checking" || inst.Links.InFlight != nil {
		t.Errorf("%+v, %v", inst, err)
	}
	wantIntact(t, e, "")
}

// busyWork is work that says when it goes on, and ends when it is told to.
func busyWork() (going chan struct{}, work func(context.Context) error) {
	going = make(chan struct{}, 10)
	return going, func(ctx context.Context) error {
		going <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
}
