package decide

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestCauses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		stored     transitions.Cause
		scope, key string
		want, by   string
	}{
		{"", "order:pay", "pawl:timer", "caller", ""},
		{"", "order:" + madeUp.String(), "k", "caller", ""},
		{"", "ops:" + madeUp.String(), "k", "caller", ""}, // a scope that anybody may name
		{transitions.CausedByOperator, "ops:" + madeUp.String(), "k", "operator", ""},
		{transitions.CausedByOperator, TimerScope(madeUp, "late"), "3", "operator", ""},
		{"", TimerScope(madeUp, "late"), "3", "timer", "late"},
		{"", transitions.InboxScope("bank:eu"), "m-1", "message", "bank:eu"},
		{"", transitions.Reserved + "child:" + madeUp.String(), "3-0", "parent", madeUp.String()},
		{"", endScope(madeUp), "ended", "child", madeUp.String()},
		{"", UndoScope(madeUp), "e0ff", "undo", "e0ff"},
		{"", LateScope + madeUp.String(), "3", "retention", ""},
		{"", "", "", "caller", ""},
	} {
		cause, by := transitions.CauseOf(tt.stored, tt.scope, tt.key)
		assert.Truef(t, string(cause) == tt.want && by == tt.by,
			"%q %q: got %q by %q, want %q by %q", tt.stored, tt.scope, cause, by, tt.want, tt.by)
	}
}

// Timers, children and theirs, activities and what undoes them, commands for later, and the events of all of these.
func TestAllThatComesOfACommandIsInItsTrace(t *testing.T) {
	t.Parallel()
	const trace tracing.Context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	found := 0
	check := func(what string, got tracing.Context) {
		t.Helper()
		if found++; got != trace {
			t.Errorf("%s is in %q", what, got)
		}
	}
	var all func(d Decision)
	all = func(d Decision) {
		for i := range d.Events {
			check("an event of "+d.Entry.Transition, d.Events[i].Trace)
		}
		for _, c := range d.Commands {
			asked, err := c.flight().Asked()
			assert.NoError(t, err)
			check(c.Transition+" in "+c.Scope, asked.Trace)
		}
		for _, c := range d.Children {
			check("a child", c.Prepared.Trace)
			all(c.Decision)
		}
	}
	l := newLife(t)
	l.trace = trace
	later := l.scheduled(l.command("edit", `{}`))
	if p, err := later.Due(l.w); err != nil {
		t.Error(err)
	} else {
		check("what was for later", p.Trace)
	}
	all(l.startChildren("edit", `{"do":"spawn","n":2}`))
	all(l.worked("book", `{"text":"seat 7"}`))
	all(l.worked("insure", `{"text":"policy 8"}`))
	pay := l.accept("pay", `{}`)
	all(l.end(pay, failure(workflow.FailureError, "no money", false)))
	assert.Truef(t, found >= 15, "%d things were looked at", found)
}
