package decide

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// because gives a command a reason.
func because(c transitions.Command, reason string) transitions.Command {
	c.Reason = reason
	return c
}

// wantReason holds what a decision writes against the reason that it should have.
func wantReason(t testing.TB, d Decision, transition, reason string) {
	t.Helper()
	assert.Truef(t, d.Entry.Transition == transition && d.Entry.Reason == reason,
		"%s has the reason %q, want %s and %q", d.Entry.Transition, d.Entry.Reason, transition, reason)
	for _, e := range d.Events {
		assert.Equalf(t, reason, e.Reason, "the event %s has the reason", e.Type)
	}
}

// undoIn is the undo that a decision plans.
func undoIn(t testing.TB, d Decision) *Planned {
	t.Helper()
	i := slices.IndexFunc(d.Commands, func(c Planned) bool { return c.Flight.Phase == transitions.Undoing })
	require.Truef(t, i >= 0, "it plans %+v", d.Commands)
	return &d.Commands[i]
}

func TestTheCallersReasonIsWritten(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	wantReason(t, l.must(l.decide(because(l.command("edit", `{"do":"emit"}`), "she\ncalled"))), "edit", "she\ncalled")
	wantReason(t, l.do("edit", `{}`), "edit", "")
	l.inst = nil
	wantReason(t, l.must(l.decide(because(l.command("plan", `{}`), "a holiday"))), "plan", "a holiday")
	c := because(l.command("edit", `{"do":"spawn"}`), "with a friend")
	p := l.prepare(c)
	d := DecideAll(p, l.w, l.inst, func(string, int) *workflow.Workflow { return l.w }, nobody, noon)
	require.Lenf(t, d.Children, 1, "%+v", d)
	wantReason(t, d.Children[0].Decision, "plan", "") // it was not asked for by itself
}

// The code's reason is stored, and the code can read the caller's.
func TestTheCodesReasonCountsMoreThanTheCallers(t *testing.T) {
	t.Parallel()
	var seen []string
	look := func(c *workflow.Call, _ *ticket, p struct{ Why string }) error {
		seen = append(seen, c.Reason())
		c.Because(p.Why)
		return nil
	}
	w := built(t, workflow.Define("look", 1, workflow.Start("begin", "open", look),
		workflow.On("end", workflow.From("open"), "closed", look).Guard("said", func(c *workflow.Call, _ ticket) error {
			if c.Reason() == "" {
				return workflow.Refuse("say why")
			}
			return nil
		})).Final("closed"))
	var inst *transitions.Instance
	decided := func(transition, payload, reason string) Decision {
		c := transitions.Command{Workflow: "look", Transition: transition, Key: "k", Payload: []byte(payload), Reason: reason}
		if inst != nil {
			c.Instance = inst.ID
		}
		p, err := Prepare(c, w, fixedID)
		require.NoError(t, err)
		return Decide(p, w, inst, noon)
	}
	wantReason(t, decided("begin", `{}`, "the caller"), "begin", "the caller")
	d := decided("begin", `{"Why":"the code"}`, "the caller")
	wantReason(t, d, "begin", "the code")
	inst = d.After
	wantCode(t, decided("end", `{}`, "").Err, workflow.GuardRefused)
	wantReason(t, decided("end", `{}`, "it is over"), "end", "it is over")
	assert.Equal(t, "the caller, the caller, it is over", strings.Join(seen, ", "), "the code saw")
}

// A command in flight keeps its reason, until a failure has one of its own or an operator settles it.
func TestTheReasonIsKeptInFlight(t *testing.T) {
	t.Parallel()
	begun := func() (*life, *InFlight) {
		l := newLife(t)
		p, d := l.decide(because(l.command("book", `{}`), "a holiday"))
		wantReason(t, l.must(p, d), "book.accepted", "a holiday")
		f := FlightOf(p.Begun(&d, l.now), p.Tenant)
		f.Attempt, f.Definition, f.Data = 1, d.After.Definition, d.After.Data
		return l, f
	}
	l, f := begun()
	wantReason(t, l.end(f, Outcome{Result: []byte(`{}`)}), "book", "a holiday")
	d := l.end(f, failure(workflow.FailureError, "no seats", true))
	wantReason(t, d, "book.failed", "no seats")
	undo := undoIn(t, d)
	l.must(nil, d)
	wantReason(t, l.end(undo.flight(), Outcome{}), "book.undone", "")
	other := newLife(t)
	without := undoIn(t, other.end(other.accept("book", `{}`), failure(workflow.FailureError, "no seats", true)))
	assert.Equal(t, undo.Fingerprint, without.Fingerprint, "the undo is another command where what it undoes has a reason")

	for reason, want := range map[string]string{"the statement has it": "the statement has it", "": ""} {
		l, f := begun()
		o := l.operation(transitions.Operation{Action: transitions.Resolve, Reason: reason, Result: []byte(`{}`),
			Target: transitions.CommandRef{Scope: f.Scope, Key: f.Key}})
		o.Stuck = recordOf(f, transitions.FailedRetryable, "unknown_outcome")
		wantReason(t, Decide(o, l.w, l.inst, l.now), "book", want)
	}
	l, f = begun()
	tried := l.operate(transitions.Retry, recordOf(f, transitions.FailedRetryable, "unknown_outcome"))
	f.Request = tried.Target.Flight.Request
	l.must(nil, tried)
	wantReason(t, l.end(f, Outcome{Result: []byte(`{}`)}), "book", "a holiday")
}
