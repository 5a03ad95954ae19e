package decide

import (
	"slices"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// maxAutomatic limits the automatic transitions that follow a command.
const maxAutomatic = 100

// macrostep changes the outcome of the command's steps to that of the whole command: the state that their targets lead to, and the
// automatic transitions that are enabled then, one after the other. moves are the command's steps with the states that they leave; none
// if the command only changes the data. Its error is that of the workflow's code.
func (c *change) macrostep(moves ...workflow.Move) error {
	if c.settled = true; c.w.IsPlain() {
		return nil
	}
	switch len(moves) {
	case 0:
		if c.out.To != c.inst.State { // an operator corrects it
			c.out.To = c.w.Take("", workflow.Move{To: c.out.To})
		}
	case 1:
		moves[0].To = c.out.To
		fallthrough
	default:
		c.out.To = c.w.Take(c.inst.State, moves...)
	}
	for {
		next, err := c.enabled()
		if err != nil || len(next) == 0 {
			return err
		}
		if len(c.automatic)+len(next) > maxAutomatic {
			return defect("more than %d automatic transitions follow %s.%s: %v", maxAutomatic, c.w.Name, c.name, c.automatic[:10])
		}
		state := c.out.To
		for i, m := range next {
			if err := c.automaticStep(m.Step, state); err != nil {
				return err
			}
			next[i].To = c.out.To
		}
		c.out.To = c.w.Take(state, next...)
	}
}

// enabled selects the automatic transitions whose guards permit them now.
func (c *change) enabled() ([]workflow.Move, error) {
	var broken error
	moves := c.w.SelectAuto(c.out.To, func(s *workflow.Step) bool {
		refusals := s.Check(c.facts(c.out.To), c.out.Data)
		for _, r := range refusals {
			if workflow.CodeOf(r) != workflow.GuardRefused && broken == nil {
				broken = r
			}
		}
		return len(refusals) == 0
	})
	return moves, broken
}

// automaticStep runs a step on the data of the step before, in a state, and adds its outcome.
func (c *change) automaticStep(step *workflow.Step, state workflow.State) error {
	payload, err := step.Decode(nil)
	if err != nil {
		return defect("automatic transition %q of %s: %w", step.Name, c.w.Name, err)
	}
	out, err := step.Run(c.facts(state), c.out.Data, payload)
	if err != nil {
		return err
	}
	c.automatic = append(c.automatic, step.Name)
	return c.add(out)
}

// facts are those of a step that is not the first of its command.
func (c *change) facts(state workflow.State) workflow.Facts {
	f := factsOf(c.p, c.inst, c.now)
	f.State, f.Spawned = state, len(c.out.Spawns)
	return f
}

// add appends the outcome of a further step.
func (c *change) add(out workflow.Outcome) error {
	for _, e := range out.Events {
		if slices.ContainsFunc(c.out.Events, func(x workflow.Emitted) bool { return x.Type == e.Type }) {
			return defect("%s.%s and a transition that follows it both emit event %q", c.w.Name, c.name, e.Type)
		}
	}
	c.out.To, c.out.Data = out.To, out.Data
	c.out.Events = append(slices.Clip(c.out.Events), out.Events...)
	c.out.Spawns = append(slices.Clip(c.out.Spawns), out.Spawns...)
	c.out.KeepAnswer = max(c.out.KeepAnswer, out.KeepAnswer)
	if len(out.Result) > 0 {
		c.out.Result = out.Result
	}
	if out.Reason != "" {
		c.out.Reason = out.Reason
	}
	return tooLarge(c.w, c.inst, out.Data)
}

// choose returns the moves of a command on an instance: of steps that leave one active state each, those whose guards permit them.
func (p *Prepared) choose(w *workflow.Workflow, inst *transitions.Instance, steps []*workflow.Step, facts workflow.Facts,
) ([]workflow.Move, error) {
	if w.IsPlain() {
		return []workflow.Move{{Step: steps[0], From: inst.State}}, nil
	}
	var refusal error
	moves := w.Select(inst.State, p.Transition, func(s *workflow.Step) bool {
		if !slices.Contains(steps, s) {
			return false
		}
		refusals := s.Check(facts, inst.Data)
		if len(refusals) > 0 && refusal == nil {
			refusal = refusals[0]
		}
		return len(refusals) == 0
	})
	if len(moves) == 0 {
		return nil, refusal
	}
	return moves, nil
}
