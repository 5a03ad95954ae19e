package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// decideEnding takes an instance on by the outcome of an activity. Where the
// instance has left the in-between state meanwhile, only the command ends, and
// what it did is undone.
func decideEnding(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	outcome := p.Resumed.Outcome
	step, err := activityOf(p, w)
	waits := inst != nil && inst.Links.InFlight != nil &&
		inst.Links.InFlight.Scope == p.Scope && inst.Links.InFlight.Key == p.Key
	if !waits {
		return leftBehind(p, w, step, now)
	}
	if err != nil {
		return failed(err)
	}
	if outcome.Failure != nil {
		return decideFailure(p, w, step, inst, *outcome.Failure, nil, now)
	}
	out, failure := step.Done(factsOf(p, inst, now), inst.Data, outcome.Result)
	if failure == nil {
		failure = tooLarge(w, inst, out.Data)
	}
	if failure == nil && p.refusal != nil {
		failure = p.refusal
	}
	if failure != nil {
		e := workflow.AsError(failure)
		if e.Code != workflow.GuardRefused && e.Code != workflow.DataTooLarge && e != p.refusal {
			return failed(e)
		}
		return decideFailure(p, w, step, inst,
			workflow.Failure{Kind: workflow.FailureRefused, Message: e.Message, Attempts: min(p.Resumed.Tried, step.Work.Retry.Attempts),
				Unknown: true}, outcome.Result, now)
	}
	c := change{p: p, w: w, step: step, inst: inst, out: out, name: step.Name, payload: member("result", outcome.Result), now: now}
	d := c.decide()
	if d.After == nil {
		return d
	}
	c.answer(&d)
	d.settle(step)
	if step.Work.Undoable && w.UndoneByOthers(step.Name) {
		d.After.Links.Effects = append(slices.Clip(d.After.Links.Effects), transitions.Effect{
			CommandRef: transitions.CommandRef{Transition: step.Name, Scope: p.Scope, Key: p.Key}, From: p.from,
			Payload: p.Canonical, Result: outcome.Result})
	}
	return d
}

// leftBehind ends a command whose instance has gone on without it. It may be on a version that has no such activity (step is
// nil): then the one before had no undo of it either, or the plan would not have been taken.
func leftBehind(p *Prepared, w *workflow.Workflow, step *workflow.Step, now time.Time) Decision {
	outcome := p.Resumed.Outcome
	d := refused(workflow.Errorf(workflow.CommandCancelled, "another command took the instance on while %q was in flight", p.Transition))
	if step != nil && (outcome.Failure == nil || outcome.Failure.Unknown) {
		d.undo(p, w.Version, step, outcome.Result, now)
	}
	return d
}

// decideFailure takes the instance to the activity's failure state, undoes what
// the activity may have done, and the earlier ones that it says.
func decideFailure(p *Prepared, w *workflow.Workflow, step *workflow.Step, inst *transitions.Instance, f workflow.Failure,
	result []byte, now time.Time,
) Decision {
	f.Message = shortened(f.Message, transitions.MaxReason) // the text may be the workflow's own
	out, err := step.Fail(factsOf(p, inst, now), inst.Data, f)
	if err != nil {
		return failed(workflow.AsError(err))
	}
	payload, err := json.Marshal(f)
	if err != nil {
		return failed(defect("the failure of %s.%s cannot be encoded: %w", p.Workflow, p.Transition, err))
	}
	if out.Reason == "" {
		out.Reason = f.Message
	}
	c := change{p: p, w: w, step: step, inst: inst, out: out, name: step.Name + gaveUp, payload: payload, now: now,
		remains: f.Unknown && !step.Work.Undoable}
	d := c.decide()
	if d.After == nil {
		return d
	}
	e := &workflow.Error{Code: codeOf(f.Kind), State: d.After.State, Message: f.Message}
	problem := transitions.ProblemOf(e)
	d.Err, d.Status, d.Code, d.Body = e, transitions.FailedFinal, problem.Status, problem.JSON()
	if f.Unknown {
		d.undo(p, w.Version, step, result, now)
	}
	d.undoEarlier(step, now)
	return d
}

// codeOf is what a failure for good is to the caller.
func codeOf(kind workflow.FailureKind) workflow.Code {
	switch kind {
	case workflow.FailureCancelled:
		return workflow.CommandCancelled
	case workflow.FailureUntaken:
		return workflow.CommandAbandoned
	case failureCredential:
		return workflow.CredentialEnded
	}
	return workflow.ActivityFailed
}

// undo plans the undo of the command's effect on an instance of that version, if the activity has one.
func (d *Decision) undo(p *Prepared, definition int, step *workflow.Step, result []byte, now time.Time) {
	if step.Work.Undoable {
		done := transitions.Effect{CommandRef: transitions.CommandRef{Transition: step.Name, Scope: p.Scope, Key: p.Key}, From: p.from,
			Payload: p.Canonical, Result: result}
		d.Commands = append(d.Commands, undoOf(p.Command, definition, done, p.by, now))
	}
}

// settle forgets the effects that the activity has used up.
func (d *Decision) settle(step *workflow.Step) {
	if len(step.Work.Settles) > 0 {
		d.After.Links.Effects = slices.DeleteFunc(slices.Clone(d.After.Links.Effects), func(e transitions.Effect) bool {
			return slices.Contains(step.Work.Settles, e.Transition)
		})
		if len(d.After.Links.Effects) == 0 {
			d.After.Links.Effects = nil
		}
	}
}

// undoEarlier plans the undo of the effects that the failed activity names, the
// newest first.
func (d *Decision) undoEarlier(step *workflow.Step, now time.Time) {
	var kept []transitions.Effect
	for _, e := range d.After.Links.Effects {
		if !slices.Contains(step.Work.Undoes, e.Transition) {
			kept = append(kept, e)
		}
	}
	on := transitions.Command{Tenant: d.After.Tenant, Workflow: d.After.Workflow, Instance: d.After.ID, Trace: d.Events[0].Trace}
	for _, e := range slices.Backward(d.After.Links.Effects) {
		if slices.Contains(step.Work.Undoes, e.Transition) {
			d.Commands = append(d.Commands, undoOf(on, d.After.Definition, e, "", now))
		}
	}
	d.After.Links.Effects = kept
}

// undoOf is a command that undoes an effect on an instance of that version. by is who has done it if it cannot be undone.
func undoOf(on transitions.Command, definition int, done transitions.Effect, by string, now time.Time) Planned {
	effect := transitions.EffectKey(transitions.Ref{Tenant: on.Tenant, Scope: done.Scope, Key: done.Key})
	on.Scope, on.Key, on.Transition, on.Actor = UndoScope(on.Instance), effect, done.Transition, transitions.Reserved+"undo"
	on.Reason = "" // that of what is undone
	p := plan(on, done.Payload, now)
	p.Flight.Phase, p.Flight.Definition = transitions.Undoing, definition
	p.Flight.Request = Request{Payload: done.Payload, From: done.From, Effect: effect, Result: done.Result, By: by, Trace: on.Trace}.encode()
	return p
}

// decideUndone notes on the instance, whatever its state, that an effect was
// undone.
func decideUndone(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	if inst == nil {
		return failed(workflow.Errorf(workflow.InstanceNotFound, "the instance of the undo is not there"))
	}
	name, reason := p.Transition+undone, ""
	f := p.Resumed.Outcome.Failure
	if f != nil { // an operator gave it up
		name, reason = p.Transition+notUndone, shortened(f.Message, transitions.MaxReason)
	}
	c := change{p: p, w: w, inst: inst, name: name, payload: member("effect", jsontext.Value(`"`+p.effect+`"`)), now: now,
		out: workflow.Outcome{To: inst.State, Data: inst.Data, Reason: reason}}
	d := c.decide()
	if d.After == nil {
		return d
	}
	c.answer(&d)
	if f != nil {
		e := &workflow.Error{Code: workflow.ActivityFailed, State: inst.State, Message: reason}
		problem := transitions.ProblemOf(e)
		d.Err, d.Status, d.Code, d.Body, d.Plain = e, transitions.FailedFinal, problem.Status, problem.JSON(), false
	}
	return d
}

// activityOf finds the step whose activity the command is about.
func activityOf(p *Prepared, w *workflow.Workflow) (*workflow.Step, *workflow.Error) {
	if s := w.Activity(p.Transition, p.from); s != nil {
		return s, nil
	}
	return nil, defect("version %d of workflow %q has no activity %q", w.Version, w.Name, p.Transition)
}

// member is a JSON object with one member.
func member(name string, value jsontext.Value) jsontext.Value {
	if len(value) == 0 {
		value = jsontext.Value("null")
	}
	return jsontext.Value(fmt.Sprintf(`{%q:%s}`, name, value))
}

// shortened cuts a text to a number of bytes and leaves out what cannot be
// stored.
func shortened(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
}
