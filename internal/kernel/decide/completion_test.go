package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	require.NoError(t, err)
	return l, f, p
}

func TestCompletion_Deferred(t *testing.T) {
	t.Parallel()
	l, f, p := completion(t)
	d := Decide(p, l.w, l.inst, l.now)
	require.Truef(t, d.Err == nil && d.Status == transitions.Pending && d.Flight != nil && d.Flight.Phase == transitions.Scheduled &&
		d.Flight.RunAt.Equal(l.now.Add(time.Minute)) && string(d.Flight.Request) == string(f.Request),
		"decided %+v with %+v", d, d.Flight)
	assert.Truef(t, d.Entry.Transition == "joined.deferred" && len(d.After.Links.Deferred) == 1 && len(d.Due) == 0,
		"the entry is %+v, and deferred are %+v", d.Entry, d.After.Links.Deferred)
	l.inst = d.After
	// A change that cannot let it be taken does not make it due, and a second refusal leaves no second entry.
	d = Decide(p, l.w, l.inst, l.now)
	assert.Truef(t, d.After == nil && d.Flight != nil && d.Stored, "decided again as %+v", d)
	d = Decide(l.operation(transitions.Operation{Action: transitions.Pause}), l.w, l.inst, l.now)
	assert.Truef(t, len(d.Due) == 0 && len(d.After.Links.Deferred) == 1, "a pause makes due %+v", d.Due)
	d = Decide(l.operation(transitions.Operation{Action: transitions.Correct, State: booked, Reason: "it is"}), l.w, l.inst, l.now)
	require.Truef(t, d.After != nil && len(d.Due) == 1 && d.Due[0].Scope == f.Scope && d.Due[0].Key == f.Key,
		"the correction decides %+v", d)
	l.inst = d.After
	d = Decide(p, l.w, l.inst, l.now)
	assert.Truef(t, d.Err == nil && d.Entry.Transition == "joined" && len(d.After.Links.Deferred) == 0, "delivered as %+v", d)
}

func TestCompletion_CancelledOrAbandoned(t *testing.T) {
	t.Parallel()
	l, f, p := completion(t)
	l.inst = Decide(p, l.w, l.inst, l.now).After
	f.CancelledBy = "eve"
	stopped, err := f.Ending(*f.Cancelled().Outcome)
	require.NoError(t, err)
	d := Decide(stopped, l.w, l.inst, l.now)
	if d.After == nil || d.Entry.Transition != "joined.not_taken" || d.Entry.Reason != "cancelled by eve" || len(d.After.Links.Deferred) != 0 {
		t.Errorf("cancelled: %+v", d)
	}
	drop := l.operation(transitions.Operation{Action: transitions.Abandon, Target: transitions.CommandRef{Scope: f.Scope, Key: f.Key}})
	drop.Stuck = &transitions.Record{Scope: f.Scope, Key: f.Key, Status: transitions.FailedRetryable, Phase: transitions.Scheduled,
		Stuck: transitions.StuckUndecidable, Workflow: "trip", Transition: "joined", Instance: l.inst.ID, Request: f.Request}
	d = Decide(drop, l.w, l.inst, l.now)
	assert.Truef(t, d.After != nil && d.Entry.Transition == "joined.abandoned" && len(d.After.Links.Deferred) == 0, "abandoned: %+v", d)
}

// A payload that the parent cannot read is a defect. An operator decides what becomes of it.
func TestCompletion_Unreadable(t *testing.T) {
	t.Parallel()
	l, _, p := completion(t)
	d := complete(p, l.w, l.inst, failed(workflow.Errorf(workflow.InvalidPayload, "what is that")), l.now)
	assert.Truef(t, !d.Stored && workflow.CodeOf(d.Err) == workflow.InvalidPayload, "decided %+v", d)
}
