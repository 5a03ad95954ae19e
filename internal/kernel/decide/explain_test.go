package decide

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestExplainNamesEveryTransitionAndEveryReason(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	illegal := func(s workflow.State) inspect.Reason {
		return inspect.Reason{Code: workflow.IllegalTransition, Message: `not possible in state "` + string(s) + `"`}
	}
	needsBoss := func(what string) inspect.Reason {
		return inspect.Reason{Code: workflow.RoleRequired, Message: `"` + what + `" requires role boss`}
	}
	byFiler := func(what string) inspect.Reason {
		return inspect.Reason{Code: workflow.SeparationOfDuties, Message: `"` + what + `" and "file" must be done by different actors`}
	}
	for _, tt := range []struct {
		name  string
		inst  *transitions.Instance
		actor string
		roles []string
		want  []inspect.Option
	}{
		{"the filer", expenseIn(open, 1, "5"), "ann", nil, []inspect.Option{
			{Transition: "add", Allowed: true, To: []workflow.State{open}, Reasons: nil},
			{Transition: "decide", Allowed: false, To: []workflow.State{approved, rejected, open}, Reasons: []inspect.Reason{needsBoss("decide")}},
			{Transition: "pay", Allowed: false, To: []workflow.State{paid},
				Reasons: []inspect.Reason{illegal(open), {Code: workflow.RoleRequired, Message: `"pay" requires role cashier or boss`}}},
			{Transition: "drop", Allowed: false, To: []workflow.State{dropped}, Reasons: []inspect.Reason{byFiler("drop")}},
		}},
		{"the boss, with nothing to decide", expenseIn(open, 1, "0"), "bob", []string{"boss"}, []inspect.Option{
			{Transition: "add", Allowed: true, To: []workflow.State{open}, Reasons: nil},
			{Transition: "decide", Allowed: false, To: []workflow.State{approved, rejected, open},
				Reasons: []inspect.Reason{{Code: workflow.GuardRefused, Message: "there is nothing to decide"}}},
			{Transition: "pay", Allowed: false, To: []workflow.State{paid}, Reasons: []inspect.Reason{illegal(open)}},
			{Transition: "drop", Allowed: true, To: []workflow.State{dropped}, Reasons: nil},
		}},
		{"the filer as boss", expenseIn(open, 1, "5"), "ann", []string{"boss"}, []inspect.Option{
			{Transition: "add", Allowed: true, To: []workflow.State{open}, Reasons: nil},
			{Transition: "decide", Allowed: false, To: []workflow.State{approved, rejected, open}, Reasons: []inspect.Reason{byFiler("decide")}},
			{Transition: "pay", Allowed: false, To: []workflow.State{paid}, Reasons: []inspect.Reason{illegal(open)}},
			{Transition: "drop", Allowed: false, To: []workflow.State{dropped}, Reasons: []inspect.Reason{byFiler("drop")}},
		}},
		{"anybody, in another state", expenseIn(rejected, 2, "5"), "eve", nil, []inspect.Option{
			{Transition: "add", Allowed: true, To: []workflow.State{rejected}, Reasons: nil},
			{Transition: "decide", Allowed: false, To: []workflow.State{approved, rejected, rejected},
				Reasons: []inspect.Reason{illegal(rejected), needsBoss("decide")}},
			{Transition: "pay", Allowed: false, To: []workflow.State{paid},
				Reasons: []inspect.Reason{illegal(rejected), {Code: workflow.RoleRequired, Message: `"pay" requires role cashier or boss`}}},
			{Transition: "drop", Allowed: false, To: []workflow.State{dropped}, Reasons: []inspect.Reason{needsBoss("drop")}},
		}},
		{"with every role, at the end", expenseIn(paid, 3, "5"), "eve", []string{transitions.AnyRole}, []inspect.Option{
			{Transition: "add", Allowed: false, To: []workflow.State{paid}, Reasons: []inspect.Reason{illegal(paid)}},
			{Transition: "decide", Allowed: false, To: []workflow.State{approved, rejected, paid}, Reasons: []inspect.Reason{illegal(paid)}},
			{Transition: "pay", Allowed: false, To: []workflow.State{paid}, Reasons: []inspect.Reason{illegal(paid)}},
			{Transition: "drop", Allowed: false, To: []workflow.State{dropped}, Reasons: []inspect.Reason{illegal(paid)}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kept := clone(tt.inst)
			got := Explain(w, tt.inst, tt.actor, tt.roles, noon)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, kept, tt.inst, "the instance was changed")
		})
	}
}

// What is said to be allowed is allowed, and what is not is refused for the reason that was given first.
func TestExplainAgreesWithDecide(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	payloads := map[string]string{"decide": `{"verdict":"yes"}`}
	for _, state := range w.States {
		for _, total := range []string{"0", "5"} {
			for _, actor := range []string{"ann", "bob"} {
				for _, roles := range [][]string{nil, {"boss"}, {"cashier"}, {transitions.AnyRole}} {
					inst := expenseIn(state, 2, total)
					for _, o := range Explain(w, inst, actor, roles, noon) {
						d := Decide(prepared(t, w, onE1(o.Transition, payloads[o.Transition], actor, roles...)), w, inst, noon)
						assert.Equalf(t, (d.Err == nil), o.Allowed, "%s by %s %v in %s: said %+v, decided %v", o.Transition, actor, roles, state, o, d.Err)
						assert.Falsef(t, d.Err != nil && !hasReason(o, d.Err.Code),
							"%s by %s %v in %s: decided %v, which is not among %+v", o.Transition, actor, roles, state, d.Err, o.Reasons)
					}
				}
			}
		}
	}
}

func hasReason(o inspect.Option, code workflow.Code) bool {
	for _, r := range o.Reasons {
		if r.Code == code {
			return true
		}
	}
	return false
}

func TestAGuardThatPanicsIsAReason(t *testing.T) {
	t.Parallel()
	w := built(t, workflow.Define("fragile", 1,
		workflow.Start("begin", open, nothing),
		workflow.On("end", workflow.From(open), dropped, nothing).
			Guard("it holds", func(*workflow.Call, expense) error { panic("secret of the house") })).Final(dropped))
	got := Explain(w, &transitions.Instance{Workflow: "fragile", State: open, Version: 1}, "ann", nil, noon)
	want := []inspect.Option{{Transition: "end", Allowed: false, To: []workflow.State{dropped},
		Reasons: []inspect.Reason{{Code: workflow.Internal, Message: "a guard failed"}}}}
	assert.Equal(t, want, got)
}
