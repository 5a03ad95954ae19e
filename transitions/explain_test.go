package transitions

import (
	"reflect"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

func TestExplainNamesEveryTransitionAndEveryReason(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	illegal := func(s workflow.State) Reason {
		return Reason{workflow.IllegalTransition, `not possible in state "` + string(s) + `"`}
	}
	needsBoss := func(what string) Reason { return Reason{workflow.RoleRequired, `"` + what + `" requires role boss`} }
	byFiler := func(what string) Reason {
		return Reason{workflow.SeparationOfDuties, `"` + what + `" must be done by somebody else than who did "file"`}
	}
	for _, tt := range []struct {
		name  string
		inst  *Instance
		actor string
		roles []string
		want  []Option
	}{
		{"the filer", expenseIn(open, 1, "5"), "ann", nil, []Option{
			{"add", true, []workflow.State{open}, nil},
			{"decide", false, []workflow.State{approved, rejected, open}, []Reason{needsBoss("decide")}},
			{"pay", false, []workflow.State{paid}, []Reason{illegal(open), {workflow.RoleRequired, `"pay" requires role cashier or boss`}}},
			{"drop", false, []workflow.State{dropped}, []Reason{byFiler("drop")}},
		}},
		{"the boss, with nothing to decide", expenseIn(open, 1, "0"), "bob", []string{"boss"}, []Option{
			{"add", true, []workflow.State{open}, nil},
			{"decide", false, []workflow.State{approved, rejected, open}, []Reason{{workflow.GuardRefused, "there is nothing to decide"}}},
			{"pay", false, []workflow.State{paid}, []Reason{illegal(open)}},
			{"drop", true, []workflow.State{dropped}, nil},
		}},
		{"the filer as boss", expenseIn(open, 1, "5"), "ann", []string{"boss"}, []Option{
			{"add", true, []workflow.State{open}, nil},
			{"decide", false, []workflow.State{approved, rejected, open}, []Reason{byFiler("decide")}},
			{"pay", false, []workflow.State{paid}, []Reason{illegal(open)}},
			{"drop", false, []workflow.State{dropped}, []Reason{byFiler("drop")}},
		}},
		{"anybody, in another state", expenseIn(rejected, 2, "5"), "eve", nil, []Option{
			{"add", true, []workflow.State{rejected}, nil},
			{"decide", false, []workflow.State{approved, rejected, rejected}, []Reason{illegal(rejected), needsBoss("decide")}},
			{"pay", false, []workflow.State{paid}, []Reason{illegal(rejected), {workflow.RoleRequired, `"pay" requires role cashier or boss`}}},
			{"drop", false, []workflow.State{dropped}, []Reason{needsBoss("drop")}},
		}},
		{"with every role, at the end", expenseIn(paid, 3, "5"), "eve", []string{AnyRole}, []Option{
			{"add", false, []workflow.State{paid}, []Reason{illegal(paid)}},
			{"decide", false, []workflow.State{approved, rejected, paid}, []Reason{illegal(paid)}},
			{"pay", false, []workflow.State{paid}, []Reason{illegal(paid)}},
			{"drop", false, []workflow.State{dropped}, []Reason{illegal(paid)}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kept := tt.inst.clone()
			got := Explain(w, tt.inst, tt.actor, tt.roles, noon)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if !reflect.DeepEqual(tt.inst, kept) {
				t.Error("the instance was changed")
			}
		})
	}
}

// What is said to be allowed is allowed, and what is not is refused for the
// reason that was given first.
func TestExplainAgreesWithDecide(t *testing.T) {
	t.Parallel()
	w := built(t, definition(1))
	payloads := map[string]string{"decide": `{"verdict":"yes"}`}
	for _, state := range w.States {
		for _, total := range []string{"0", "5"} {
			for _, actor := range []string{"ann", "bob"} {
				for _, roles := range [][]string{nil, {"boss"}, {"cashier"}, {AnyRole}} {
					inst := expenseIn(state, 2, total)
					for _, o := range Explain(w, inst, actor, roles, noon) {
						d := Decide(prepared(t, w, onE1(o.Transition, payloads[o.Transition], actor, roles...)), w, inst, noon)
						if o.Allowed != (d.Err == nil) {
							t.Errorf("%s by %s %v in %s: said %+v, decided %v", o.Transition, actor, roles, state, o, d.Err)
						}
						if d.Err != nil && !hasReason(o, d.Err.Code) {
							t.Errorf("%s by %s %v in %s: decided %v, which is not among %+v", o.Transition, actor, roles, state, d.Err, o.Reasons)
						}
					}
				}
			}
		}
	}
}

func hasReason(o Option, code workflow.Code) bool {
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
	got := Explain(w, &Instance{Workflow: "fragile", State: open, Version: 1}, "ann", nil, noon)
	want := []Option{{"end", false, []workflow.State{dropped}, []Reason{{workflow.Internal, "a guard failed"}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
