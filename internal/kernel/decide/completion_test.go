package decide

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// completion is that of a child of the trip which is in a state without "joined".
func completion(t *testing.T) (l *life, f *InFlight, p *Prepared) {
	t.Helper()
	l = newLife(t)
	parent := l.inst
	l.inst = l.startChildren("edit", `{"do":"spawn"}`).Children[0].Decision.After
	d := l.do("count", `{}`)
	l.inst = parent
	l.inst.State = "insuring"
	for _, c := range d.Commands {
		if c.Instance == parent.ID {
			f = c.flight()
		}
	}
	p, err := f.Due(l.w)
	if err != nil {
		t.Fatal(err)
	}
	return l, f, p
}

func TestCompletion_Deferred(t *testing.T) {
	t.Parallel()
	l, f, p := completion(t)
	d := Decide(p, l.w, l.inst, l.now)
	if d.Err != nil || d.Status != transitions.Pending || d.Flight == nil || d.Flight.Phase != transitions.Scheduled ||
		!d.Flight.RunAt.Equal(l.now.Add(time.Minute)) || string(d.Flight.Request) != string(f.Request) {
		t.Fatalf("decided %+v with %+v", d, d.Flight)
	}
	if d.Entry.Transition != "joined.deferred" || len(d.After.Links.Deferred) != 1 || len(d.Due) != 0 {
		t.Errorf("the entry is %+v, and deferred are %+v", d.Entry, d.After.Links.Deferred)
	}
	l.inst = d.After
	// A change that cannot let it be taken does not make it due, and a second refusal leaves no second entry.
	if d = Decide(p, l.w, l.inst, l.now); d.After != nil || d.Flight == nil || !d.Stored {
		t.Errorf("decided again as %+v", d)
	}
	if d = Decide(l.operation(transitions.Operation{Action: transitions.Pause}), l.w, l.inst, l.now); len(d.Due) != 0 ||
		len(d.After.Links.Deferred) != 1 {
		t.Errorf("a pause makes due %+v", d.Due)
	}
	d = Decide(l.operation(transitions.Operation{Action: transitions.Correct, State: booked, Reason: "it is"}), l.w, l.inst, l.now)
	if d.After == nil || len(d.Due) != 1 || d.Due[0].Scope != f.Scope || d.Due[0].Key != f.Key {
		t.Fatalf("the correction decides %+v", d)
	}
	l.inst = d.After
	if d = Decide(p, l.w, l.inst, l.now); d.Err != nil || d.Entry.Transition != "joined" || len(d.After.Links.Deferred) != 0 {
		t.Errorf("delivered as %+v", d)
	}
}

func TestCompletion_CancelledOrAbandoned(t *testing.T) {
	t.Parallel()
	l, f, p := completion(t)
	l.inst = Decide(p, l.w, l.inst, l.now).After
	f.CancelledBy = "eve"
	stopped, err := f.Ending(*f.Cancelled().Outcome)
	if err != nil {
		t.Fatal(err)
	}
	d := Decide(stopped, l.w, l.inst, l.now)
	if d.After == nil || d.Entry.Transition != "joined.not_taken" || d.Entry.Reason != "cancelled by eve" || len(d.After.Links.Deferred) != 0 {
		t.Errorf("cancelled: %+v", d)
	}
	drop := l.operation(transitions.Operation{Action: transitions.Abandon, Target: transitions.CommandRef{Scope: f.Scope, Key: f.Key}})
	drop.Stuck = &transitions.Record{Scope: f.Scope, Key: f.Key, Status: transitions.FailedRetryable, Phase: transitions.Scheduled,
		Stuck: transitions.StuckUndecidable, Workflow: "trip", Transition: "joined", Instance: l.inst.ID, Request: f.Request}
	if d = Decide(drop, l.w, l.inst, l.now); d.After == nil || d.Entry.Transition != "joined.abandoned" || len(d.After.Links.Deferred) != 0 {
		t.Errorf("abandoned: %+v", d)
	}
}

// A payload that the parent cannot read is a defect. An operator decides what becomes of it.
func TestCompletion_Unreadable(t *testing.T) {
	t.Parallel()
	l, _, p := completion(t)
	d := complete(p, l.w, l.inst, failed(workflow.Errorf(workflow.InvalidPayload, "what is that")), l.now)
	if d.Stored || workflow.CodeOf(d.Err) != workflow.InvalidPayload {
		t.Errorf("decided %+v", d)
	}
}
