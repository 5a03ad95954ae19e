package decide

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestAnAcceptPutsTheCommandInFlight(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	before := clone(l.inst)
	p, d := l.decide(l.command("book", `{"text":"Rome"}`))
	require.Truef(t, d.Err == nil && d.Stored && d.Status == transitions.Pending && d.Code == 202 && d.Body == nil, "got %+v", d)
	ref := transitions.CommandRef{Transition: "book", Scope: p.Scope, Key: p.Key}
	a := d.After
	assert.Truef(t, a.State == booking && a.Version == 2 && a.Open && reflect.DeepEqual(a.Links, transitions.Links{InFlight: &ref}),
		"the instance became %+v", a)
	wantLog(t, d.After, "plan ", "book Rome")
	want := Flight{Phase: transitions.Working, RunAt: noon, Request: []byte(`{"payload":{"text":"Rome"}}`), Definition: d.After.Definition}
	assert.Equalf(t, want, *d.Flight, "in flight as %+v %s", d.Flight, d.Flight.Request)
	e := d.Entry
	assert.Truef(t, e.Transition == "book.accepted" && e.From == planned && e.To == booking && string(e.Payload) == `{"text":"Rome"}`,
		"the entry is %+v", e)
	assert.Truef(t, len(d.Events) == 1 && d.Events[0].Type == "trip.book.accepted", "the events are %+v", d.Events)
	assert.Equal(t, before, l.inst, "the instance that was passed in became")
}

func TestAnAcceptCanBeRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		payload string
		roles   []string
		inst    *transitions.Instance
		want    workflow.Code
	}{
		{"by its action", `{"do":"refuse"}`, []string{"traveller"}, anyTrip(planned, `{}`), workflow.GuardRefused},
		{"for want of a role", `{}`, nil, anyTrip(planned, `{}`), workflow.RoleRequired},
		{"in its own in-between state", `{}`, []string{"traveller"}, anyTrip(booking, `{}`), workflow.IllegalTransition},
		{"where its action panics", `{"do":"panic"}`, []string{"traveller"}, anyTrip(planned, `{}`), workflow.Internal},
		{"where its action chooses a target", `{"do":"goto","text":"waiting"}`, []string{"traveller"}, anyTrip(planned, `{}`), workflow.Internal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLife(t)
			l.inst = tt.inst
			c := l.command("book", tt.payload)
			c.Roles = tt.roles
			_, d := l.decide(c)
			wantCode(t, d.Err, tt.want)
			checkRefusal(t, d, tt.inst)
			assert.Truef(t, d.Flight == nil && len(d.Commands) == 0, "something is in flight: %+v", d)
		})
	}
}

// A transition that leaves the in-between state removes the command in flight from the instance and cancels it; one that stays in the state
// does not.
func TestLeaveState_CancelsCommand(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	f := l.accept("book", `{}`)
	ref := &transitions.CommandRef{Transition: "book", Scope: f.Scope, Key: f.Key}
	if d := l.do("edit", `{}`); d.Cancelled != nil || !reflect.DeepEqual(l.inst.Links.InFlight, ref) {
		t.Errorf("staying: cancelled %+v, in flight %+v", d.Cancelled, l.inst.Links.InFlight)
	}
	if d := l.do("end", `{}`); !reflect.DeepEqual(d.Cancelled, ref) || l.inst.Links.InFlight != nil {
		t.Errorf("leaving: cancelled %+v, in flight %+v", d.Cancelled, l.inst.Links.InFlight)
	}
}

// An in-between state may have no transitions while later states have some: the refusal is stored, and must not claim that the instance is
// at its end.
func TestRefusal_OpenState(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.worked("book", `{}`)
	l.accept("insure", `{}`)
	_, d := l.decide(l.command("leave", `{}`))
	want := `"leave" is not possible in state "insuring"; nothing can be done as long as "insure" is in flight`
	assert.Truef(t, d.Err != nil && d.Err.Code == workflow.IllegalTransition && d.Err.Message == want, "got %v, want %s", d.Err, want)
	l.inst.Links.InFlight = nil // an undo, say, takes it on
	want = `"leave" is not possible in state "insuring"; nothing can be done in it by a command`
	if _, d := l.decide(l.command("leave", `{}`)); d.Err == nil || d.Err.Message != want {
		t.Errorf("got %v, want %s", d.Err, want)
	}
}

func TestTheEffectKeyNamesTheCommand(t *testing.T) {
	t.Parallel()
	f := &InFlight{Ref: transitions.Ref{Tenant: "default", Scope: "order:1", Key: "pay-1"}, Phase: transitions.Working, Attempt: 1}
	first, err := f.EffectKey()
	assert.Truef(t, err == nil && first == "4bc5ea527718bd326deba326ca4eddaa27482930",
		"got %s, %v: providers know the effects of earlier releases by this key", first, err)
	f.Attempt, f.Failures = 7, 3
	again, _ := f.EffectKey()
	assert.Truef(t, again == first, "another attempt has the key %s", again)
	seen := map[string]transitions.Ref{}
	for _, r := range []transitions.Ref{f.Ref, {Tenant: "default", Scope: "order:1", Key: "pay-2"},
		{Tenant: "default", Scope: "order:", Key: "1pay-1"}, {Tenant: "defaul", Scope: "torder:1", Key: "pay-1"},
		{Tenant: "other", Scope: "order:1", Key: "pay-1"}} {
		other, taken := seen[transitions.EffectKey(r)]
		assert.Falsef(t, taken, "%v and %v have one key", r, other)
		seen[transitions.EffectKey(r)] = r
	}
}
