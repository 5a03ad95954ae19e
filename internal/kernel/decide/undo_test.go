package decide

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A saga: what was done is undone when a later activity has failed, the newest
// first.
func TestUndo_NamedActivities(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.worked("book", `{"text":"seat 7"}`)
	l.worked("insure", `{"text":"policy 8"}`)
	require.Len(t, l.inst.Links.Effects, 2, "the effects")
	pay := l.accept("pay", `{}`)
	before := clone(l.inst)
	d := l.end(pay, failure(workflow.FailureError, "no money", false))
	assert.Equal(t, before, l.inst, "the instance that was passed in became")
	var undone []string
	for _, c := range d.Commands {
		asked, err := c.flight().Asked()
		assert.Truef(t, err == nil && c.Flight.Phase == transitions.Undoing && c.Instance == l.inst.ID, "planned %+v, %v", c, err)
		undone = append(undone, c.Transition+" "+string(asked.Result))
	}
	assert.Equal(t, []string{`insure {"text":"policy 8"}`, `book {"text":"seat 7"}`}, undone, "it undoes")
	assert.Truef(t, d.After.Links.Effects == nil && d.After.State == uncharged, "the instance became %+v", d.After)
}

// The effects that an instance keeps for undos are bounded, which is checked before the effect. Effects without an undo are not.
func TestUndo_Bounded(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	begin := func(transition string, kept ...transitions.Effect) Decision {
		l.inst.Links.Effects = kept
		_, d := l.decide(l.command(transition, `{}`))
		return d
	}
	kept := make([]transitions.Effect, MaxEffects)
	half := func(less int) []byte { return []byte(`"` + strings.Repeat("x", MaxEffectBytes/2-2-less) + `"`) }
	large, almost := transitions.Effect{Payload: half(0), Result: half(0)}, transitions.Effect{Payload: half(0), Result: half(1)}
	for name, c := range map[string]struct {
		kept []transitions.Effect
		want workflow.Code
	}{
		"none": {nil, ""}, "almost all": {kept[1:], ""}, "all": {kept, workflow.TooManyEffects},
		"almost too large": {[]transitions.Effect{almost}, ""}, "too large": {[]transitions.Effect{large}, workflow.TooManyEffects},
	} {
		d := begin("book", c.kept...)
		assert.Truef(t, workflow.CodeOf(asErr(d.Err)) == c.want && (d.After == nil) == (c.want != ""), "%s: %v", name, d.Err)
		assert.Falsef(t, c.want != "" && (!d.Stored || d.Code != 409 || d.Status != transitions.FailedFinal),
			"%s: it is answered %d, %s", name, d.Code, d.Body)
	}
	l.inst.Links.Effects = nil
	l.worked("book", `{}`)
	assert.Nil(t, begin("pay", kept...).Err, "what nothing undoes")
}

// asErr is an error that may be nil.
func asErr(e *workflow.Error) error {
	if e == nil {
		return nil
	}
	return e
}

func TestTheEndOfAnUndoIsNotedWhateverTheState(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outcome Outcome
		entry   string
		status  transitions.Status
		code    int
		reason  string
	}{
		"undone": {Outcome{}, "book.undone", transitions.Succeeded, 200, ""},
		"given up": {failure(workflow.FailureAbandoned, "given up by \xffeve", true), "book.not_undone", transitions.FailedFinal, 409,
			"given up by eve"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			f := l.accept("book", `{}`)
			l.do("end", `{}`)
			late := l.end(f, Outcome{Result: []byte(`{}`)})
			undo := late.Commands[0].flight()
			before := clone(l.inst)
			d := l.end(undo, tt.outcome)
			require.Truef(t, d.Stored && d.Status == tt.status && d.Code == tt.code && (d.Err == nil) == (tt.status == transitions.Succeeded),
				"got %+v", d)
			after := clone(before)
			after.Version, after.UpdatedAt = before.Version+1, noon
			assert.Equal(t, after, d.After, "the instance became")
			effect, _ := f.EffectKey()
			if e := d.Entry; e.Transition != tt.entry || e.From != over || e.To != over || e.Actor != "pawl:undo" || e.Reason != tt.reason ||
				string(e.Payload) != `{"effect":"`+effect+`"}` {
				t.Errorf("the entry is %+v, %s", e, e.Payload)
			}
			assert.Truef(t, len(d.Commands)+len(d.Disarmed) == 0 && d.Cancelled == nil, "it changes other commands: %+v", d)
			if tt.status == transitions.FailedFinal {
				wantCode(t, transitions.Receipt{Status: d.Code, Body: d.Body}.Err(), workflow.ActivityFailed)
			}
		})
	}
	l := newLife(t)
	l.accept("book", `{}`)
	undo := undoOf(transitions.Command{Tenant: "default", Workflow: "trip", Instance: l.inst.ID}, 1,
		transitions.Effect{CommandRef: transitions.CommandRef{Transition: "book", Scope: "s", Key: "k"}}, "", noon)
	l.inst = nil
	wantCode(t, l.end(undo.flight(), Outcome{}).Err, workflow.InstanceNotFound)
	assert.Truef(t, strings.HasPrefix(undo.Scope, transitions.Reserved), "its scope is %s", undo.Scope)
}
