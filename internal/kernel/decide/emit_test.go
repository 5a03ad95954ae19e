package decide

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
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
		{"", childScope(madeUp), "3-0", "parent", madeUp.String()},
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

func TestEveryEventOfATransitionHasItsOwnID(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	d := Decide(prepared(t, w, onE1("add", `{"amounts":[1],"do":"emit"}`, "bob")), w, expenseIn(open, 1, "1"), noon)
	var ids []string
	for i := range d.Events {
		d.Events[i].Position = 5
		ids = append(ids, d.Events[i].ID())
	}
	assert.Equal(t, []string{"5-0", "5-1", "5-2"}, ids)
}
