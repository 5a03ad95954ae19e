package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// startChildren decides a command and the children that it asks for.
func (l *life) startChildren(transition, payload string) Decision {
	l.t.Helper()
	_, d := l.decide(l.command(transition, payload))
	d.startChildren(l.newest, nobody, l.now)
	return d
}

// nobody takes an id.
func nobody(uuid.UUID) bool { return false }

func (l *life) newest(name string) *workflow.Workflow {
	if name == "trip" {
		return l.w
	}
	return nil
}

func TestChildren_Created(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	d := l.startChildren("edit", `{"do":"spawn","n":2,"text":"bob"}`)
	require.Truef(t, d.Err == nil && len(d.Children) == 2, "got %+v", d)
	seen := map[uuid.UUID]bool{l.inst.ID: true}
	for i, b := range d.Children {
		c := b.Decision.After
		require.Falsef(t, c == nil || c.ID != b.Prepared.Instance || seen[c.ID] || c.State != planned || c.Version != 1 || !b.Prepared.Creates,
			"child %d is %+v", i, c)
		seen[c.ID] = true
		wantLog(t, c, "plan bob")
		p := c.Links.Parent
		assert.Truef(t, p != nil && *p == (transitions.Parent{Workflow: "trip", Instance: l.inst.ID, End: "joined"}), "its parent is %+v", p)
		if p := b.Prepared; p.Scope != "pawl:child:"+l.inst.ID.String() || p.Key != fmt.Sprintf("2-%d", i) || p.Actor != "ann" {
			t.Errorf("it was started as %s %s by %s", p.Scope, p.Key, p.Actor)
		}
		assert.Len(t, plans(b.Decision), 2, "its timers")
	}
	// A decision is made again when its transaction is, and on another version.
	again := l.startChildren("edit", `{"do":"spawn","n":2,"text":"bob"}`)
	later := clone(l.inst)
	later.Version++
	l.inst = later
	other := l.startChildren("edit", `{"do":"spawn"}`)
	assert.True(t, again.Children[1].Prepared.Instance == d.Children[1].Prepared.Instance && !seen[other.Children[0].Prepared.Instance],
		"the children's ids do not follow from the parent's id, version and their number")
}

func TestChildLimitAndErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payload string
		cause   string
	}{
		"as many as may be":       {`{"do":"spawn","n":100}`, ""},
		"one too many":            {`{"do":"spawn","n":101}`, "more than 100 children"},
		"without an end":          {`{"do":"spawn a family"}`, "more than 100 children"},
		"of no workflow":          {`{"do":"spawn what is not there"}`, "knows no such workflow"},
		"by no start":             {`{"do":"spawn by a step"}`, "that is not a start"},
		"without a business key":  {`{"do":"spawn with a key"}`, "has a business key, and the child names none"},
		"with a payload amiss":    {`{"do":"spawn wrongly"}`, "invalid_payload"},
		"that are refused":        {`{"do":"spawn the refused"}`, "guard_refused"},
		"none, as it was refused": {`{"do":"refuse"}`, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			d := l.startChildren("edit", tt.payload)
			switch tt.cause {
			case "":
				assert.Truef(t, d.Err == nil && len(d.Children) == 100, "got %d, %v", len(d.Children), d.Err)
			case "-":
				wantCode(t, d.Err, workflow.GuardRefused)
			default:
				wantCode(t, d.Err, workflow.Internal)
				checkRefusal(t, d, nil)
				assert.Truef(t, d.Children == nil && strings.Contains(d.Err.Error(), tt.cause), "got %v", d.Err)
			}
		})
	}
}

// The end of a child is a command to its parent, with the child's data as they are.
func TestTheEndOfAChildTellsItsParent(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	parent := l.inst
	d := l.startChildren("edit", `{"do":"spawn","text":"bob"}`)
	l.inst = d.Children[0].Decision.After
	child := l.inst.ID
	d = l.do("count", `{}`)
	var told []Planned
	for _, c := range d.Commands {
		if c.Instance == parent.ID {
			told = append(told, c)
		}
	}
	require.Truef(t, len(told) == 1 && told[0].Scope == "pawl:end:"+child.String() && told[0].Key == "ended" &&
		told[0].Actor == "pawl:child" && told[0].Transition == "joined", "it tells %+v", told)
	asked, err := told[0].flight().Asked()
	got := decoded[workflow.Ended[trip]](t, asked.Payload)
	assert.Truef(t, err == nil && got.Child == child && got.State == over && got.Workflow == "trip", "it tells %+v, %v", got, err)
	// An operator pauses what has ended: that is no second end.
	if d := Decide(l.operation(transitions.Operation{Action: transitions.Pause}), l.w, l.inst, noon); d.After == nil || len(d.Commands) > 0 {
		t.Errorf("it ended again: %+v", d)
	}
	l.inst = parent
	p, err := told[0].flight().Due(l.w)
	require.NoError(t, err)
	d = Decide(p, l.w, parent, noon)
	require.Truef(t, d.Err == nil && d.After.State == planned, "the parent decides %+v", d)
	wantLog(t, d.After, "plan ", "joined by over with [plan bob]")
	assert.Equal(t, int64(1<<53+1), decoded[trip](t, d.After.Data).Number, "the parent learns the number")
	assert.Truef(t, jsontext.Value(d.Entry.Payload).IsValid(), "audited as %s", d.Entry.Payload)
}

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
		d.Flight.RunAt.Equal(l.now.Add(time.Minute)) && string(d.Flight.Request) == string(f.Request), "decided %+v with %+v", d, d.Flight)
	assert.Truef(t, d.Entry.Transition == "joined.deferred" && len(d.After.Links.Deferred) == 1 && len(d.Due) == 0,
		"the entry is %+v, and deferred are %+v", d.Entry, d.After.Links.Deferred)
	l.inst = d.After
	// A change that cannot let it be taken does not make it due, and a second refusal leaves no second entry.
	d = Decide(p, l.w, l.inst, l.now)
	assert.Truef(t, d.After == nil && d.Flight != nil && d.Stored, "decided again as %+v", d)
	d = Decide(l.operation(transitions.Operation{Action: transitions.Pause}), l.w, l.inst, l.now)
	assert.Truef(t, len(d.Due) == 0 && len(d.After.Links.Deferred) == 1, "a pause makes due %+v", d.Due)
	d = Decide(l.operation(transitions.Operation{Action: transitions.Correct, State: booked, Reason: "it is"}), l.w, l.inst, l.now)
	require.Truef(t, d.After != nil && len(d.Due) == 1 && d.Due[0].Scope == f.Scope && d.Due[0].Key == f.Key, "the correction decides %+v", d)
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
	assert.Truef(t, d.After != nil && d.Entry.Transition == "joined.not_taken" && d.Entry.Reason == "cancelled by eve" &&
		len(d.After.Links.Deferred) == 0, "cancelled: %+v", d)
	drop := l.operation(transitions.Operation{Action: transitions.Abandon, Target: transitions.CommandRef{Scope: f.Scope, Key: f.Key}})
	drop.Stuck = &transitions.Record{Scope: f.Scope, Key: f.Key, Status: transitions.FailedRetryable, Phase: transitions.Scheduled,
		Stuck: transitions.StuckUndecidable, Workflow: "trip", Transition: "joined", Instance: l.inst.ID, Request: f.Request}
	d = Decide(drop, l.w, l.inst, l.now)
	assert.Truef(t, d.After != nil && d.Entry.Transition == "joined.abandoned" && len(d.After.Links.Deferred) == 0, "abandoned: %+v", d)
}
