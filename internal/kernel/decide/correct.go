package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

const correctedEntry = "pawl.corrected"

// correct sets the state or the data of an instance, as an operator requests. The definition's rules about states, timers, attributes and
// the size of data apply; guards and roles do not.
func correct(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	o := p.Operation
	refuse := func(format string, args ...any) Decision {
		e := workflow.Errorf(workflow.CorrectionRefused, format, args...)
		e.State = inst.State
		return refused(e)
	}
	if !inst.Open {
		return refuse("the instance has ended in state %q; nothing leaves that", inst.State)
	}
	out := unchanged(inst, o.Reason)
	if o.State != "" && o.State != inst.State {
		if problem := w.StateProblem(o.State); problem != "" {
			return refuse("it cannot be in state %q: %s", o.State, problem)
		}
		out.To = o.State
	}
	if o.Data != nil {
		data, err := w.Corrected(inst.Data, o.Data)
		if err == nil {
			err = tooLarge(w, inst, data)
		}
		if err != nil {
			return unwilling(err, inst)
		}
		out.Data = data
	}
	c := change{p: p, w: w, inst: inst, out: out, name: correctedEntry, payload: p.Canonical, now: now}
	return c.decideAndAnswer()
}
