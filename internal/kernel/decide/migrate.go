package decide

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// migrate moves an instance to another version of its workflow, by the plan for its version. If it has that version nothing changes.
func migrate(p *Prepared, inst *transitions.Instance, now time.Time) Decision {
	if inst.Definition == p.Operation.To {
		return p.existing(inst)
	}
	if !inst.Open {
		return refused(&workflow.Error{Code: workflow.MigrationRefused, State: inst.State,
			Message: fmt.Sprintf("the instance has ended in state %q, and stays on its version", inst.State)})
	}
	at := slices.IndexFunc(p.plans, func(m *workflow.Migration) bool { return m.From.Version == inst.Definition })
	if at < 0 {
		return failed(workflow.Errorf(workflow.NotOnThisNode,
			"this node has no plan that takes instances of workflow %q from version %d to version %d",
			inst.Workflow, inst.Definition, p.Operation.To))
	}
	plan := p.plans[at]
	if p.held != "" {
		return failed(&workflow.Error{Code: workflow.MigrationWaits, State: inst.State, Message: p.held})
	}
	if flight := inst.Links.InFlight; flight != nil && !plan.Carries(flight.Transition) {
		return failed(&workflow.Error{Code: workflow.MigrationWaits, State: inst.State,
			Message: fmt.Sprintf("%q is in flight; the plan lets it end first", flight.Transition)})
	}
	if p.unfit != "" {
		return refused(&workflow.Error{Code: workflow.MigrationRefused, State: inst.State, Message: p.unfit})
	}
	return migrateBy(p, plan, inst, now)
}

// Held returns the same migration of one instance, deferred for a reason outside the instance: nothing is stored. An earlier decision is
// still returned.
func (p *Prepared) Held(why string) *Prepared {
	again := *p
	again.held = why
	return &again
}

// Unfit returns the same migration of one instance after its result could not be stored: it is refused and not retried.
func (p *Prepared) Unfit(err error) *Prepared {
	again := *p
	again.unfit = workflow.AsError(err).Message + "; the log of the node says why"
	return &again
}

// migrateBy migrates the instance. An error of the plan's code refuses it; a later migration may succeed.
func migrateBy(p *Prepared, plan *workflow.Migration, inst *transitions.Instance, now time.Time) (d Decision) {
	defer func() {
		if v := recover(); v != nil {
			e := defect("panic in the plan of %s from version %d: %v\n%s", inst.Workflow, inst.Definition, v, debug.Stack())
			e.Message = "the plan's code failed"
			d = refused(unplanned(inst, e))
		}
	}()
	into, known := plan.Into(inst.State)
	if !known || into == "" {
		return refused(unplanned(inst, workflow.Errorf(workflow.MigrationRefused, "the plan does not know state %q", inst.State)))
	}
	data, err := plan.Data(inst.Data)
	if err == nil && hasNUL(data) {
		err = workflow.Errorf(workflow.MigrationRefused, "a string of the new data contains a NUL (\\u0000), which cannot be stored")
	}
	if err == nil {
		err = tooLarge(plan.To, inst, data)
	}
	if err != nil {
		return refused(unplanned(inst, workflow.AsError(err)))
	}
	c := change{p: p, w: plan.To, inst: inst, name: migratedEntry, now: now, plan: plan,
		out:     workflow.Outcome{To: into, Data: data, Reason: p.Operation.Reason},
		payload: jsontext.Value(fmt.Sprintf(`{"from":%d,"to":%d}`, plan.From.Version, plan.To.Version))}
	d = c.decideAndAnswer()
	if d.After == nil {
		return refused(unplanned(inst, d.Err)) // its timers or attributes
	}
	d.Migrated = true
	return d
}

// unplanned converts an error of the plan's code into a refusal, with the text that may be shown.
func unplanned(inst *transitions.Instance, err *workflow.Error) *workflow.Error {
	message := shortened(err.Message, transitions.MaxReason)
	if err.Cause != nil {
		message += "; the log of the node says why"
	}
	return &workflow.Error{Code: workflow.MigrationRefused, State: inst.State, Message: message, Cause: err.Cause}
}

// migrate sets the new version. Commands in flight stay in flight.
func (c *change) migrate(after *transitions.Instance) {
	after.Definition = c.plan.To.Version
	after.Actors = c.plan.Actors(after.Actors)
	after.Links.Migrations = append(slices.Clip(after.Links.Migrations),
		transitions.Migrated{Version: after.Version, From: c.plan.From.Version})
}

func (c *change) attributes(computed map[string]string) map[string]string {
	if c.plan != nil {
		return c.plan.Attributes(c.inst.Attributes, computed)
	}
	return c.w.KeptAttributes(c.inst.Attributes, computed)
}

// moveTimers arms and disarms the timers that the migration changes.
func (c *change) moveTimers(d *Decision) error {
	list, err := c.plan.Timers(c.inst.State, c.inst.Data, d.After.Data, c.now)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.Disarm {
			d.Disarmed = append(d.Disarmed, TimerScope(d.After.ID, t.Name))
		}
		if t.Arm == nil {
			continue
		}
		if err := c.tooLate(t.Name, t.Due); err != nil {
			return err
		}
		c.arm(d, t.Arm, t.Due)
	}
	return nil
}

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
