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
		if s.Start || s.Internal || listed[s.Name] {
			continue
		}
		listed[s.Name] = true
		steps := slices.DeleteFunc(w.AllLeaving(s.Name, inst.State), asker.isForbidden)
		able, leaves := steps, len(steps) > 0
		if !leaves {
			steps, able = []*workflow.Step{s}, w.Moving(s.Name)
		}
		o := inspect.Option{Transition: s.Name}
		for i, step := range steps {
			for _, to := range step.To {
				if to == workflow.Stay {
					to = inst.State
				}
				if i == 0 || !slices.Contains(o.To, to) {
					o.To = append(o.To, to)
				}
			}
		}
		if !leaves {
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
			o.Reasons = guardReasons(steps, facts, inst.Data)
		}
		o.Allowed = len(o.Reasons) == 0
		options = append(options, o)
	}
	return options
}

// guardReasons returns why guards permit none of the steps: the refusals of the first.
func guardReasons(steps []*workflow.Step, f workflow.Facts, data []byte) (reasons []inspect.Reason) {
	for i, step := range steps {
		refusals := checkGuards(step, f, data)
		if len(refusals) == 0 {
			return nil
		}
		for _, err := range refusals {
			if i == 0 {
				reasons = append(reasons, inspect.Reason{Code: err.Code, Message: err.Message})
			}
		}
	}
	return reasons
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
