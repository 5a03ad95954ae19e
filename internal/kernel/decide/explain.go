package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Explain returns what the actor can do with the instance now: every transition of the workflow except starts, with every reason against
// it. Conditions on a payload are unknown here; a dry run evaluates them.
func Explain(w *workflow.Workflow, inst *transitions.Instance, actor string, roles []string, now time.Time) []inspect.Option {
	asker := &Prepared{Command: transitions.Command{Tenant: inst.Tenant, Actor: actor, Roles: roles}}
	facts := workflow.Facts{Now: now, Tenant: inst.Tenant, Actor: actor, Instance: inst.ID, Version: inst.Version, State: inst.State}
	var options []inspect.Option
	listed := map[string]bool{}
	for _, s := range w.Steps {
		if s.Start || listed[s.Name] {
			continue
		}
		listed[s.Name] = true
		able := w.Moving(s.Name)
		step := w.Leaving(s.Name, inst.State)
		if step != nil {
			able = []*workflow.Step{step}
		} else {
			step = s
		}
		to := slices.Clone(step.To)
		for i, t := range to {
			if t == workflow.Stay {
				to[i] = inst.State
			}
		}
		o := inspect.Option{Transition: s.Name, To: to}
		if !step.Leaves(inst.State) {
			o.Reasons = append(o.Reasons, inspect.Reason{Code: workflow.IllegalTransition,
				Message: fmt.Sprintf("not possible in state %q", inst.State)})
		}
		if err := authorizeAny(able, asker, inst); err != nil {
			o.Reasons = append(o.Reasons, inspect.Reason{Code: err.Code, Message: err.Message})
		}
		if inst.Paused {
			o.Reasons = append(o.Reasons, inspect.Reason{Code: workflow.Paused, Message: "the instance is paused"})
		}
		if len(o.Reasons) == 0 {
			for _, err := range checkGuards(step, facts, inst.Data) {
				o.Reasons = append(o.Reasons, inspect.Reason{Code: err.Code, Message: err.Message})
			}
		}
		o.Allowed = len(o.Reasons) == 0
		options = append(options, o)
	}
	return options
}

func checkGuards(s *workflow.Step, f workflow.Facts, data []byte) (out []*workflow.Error) {
	defer func() {
		if v := recover(); v != nil {
			out = []*workflow.Error{workflow.Errorf(workflow.Internal, "a guard failed")}
		}
	}()
	for _, err := range s.Check(f, data) {
		out = append(out, workflow.AsError(err))
	}
	return out
}
