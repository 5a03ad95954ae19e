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

// decideEnding applies the outcome of an activity to the instance. If the instance has left the in-between state meanwhile, only the
// command completes, and its effect is undone.
func decideEnding(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	outcome := p.Resumed.Outcome
	step, err := activityOf(p, w)
	waits := inst != nil && inst.Links.InFlight != nil &&
		inst.Links.InFlight.Scope == p.Scope && inst.Links.InFlight.Key == p.Key
	if !waits { // a migration may have removed the activity, but only one without an undo
		d := refused(workflow.Errorf(workflow.CommandCancelled, "another command took the instance on while %q was in flight", p.Transition))
		if step != nil && (outcome.Failure == nil || outcome.Failure.Unknown) {
			d.undo(p, w.Version, step, outcome.Result, now)
		}
		return d
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
	c := change{p: p, w: w, step: step, inst: inst, out: out, name: step.Name, payload: member("result", outcome.Result), now: now}
	if failure == nil {
		failure = c.macrostep(workflow.Move{Step: step, From: step.Work.Via})
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
	d := c.decideAndAnswer()
	if d.After == nil {
		return d
	}
	d.After.Links.Effects = withoutEffects(d.After.Links.Effects, step.Work.Settles)
	if step.Work.Undoable && w.UndoneByOthers(step.Name) {
		d.After.Links.Effects = append(slices.Clip(d.After.Links.Effects), p.effectOf(step, outcome.Result))
	}
	return d
}

// decideFailure moves the instance to the activity's failure state and plans the undo of its possible effect and of the earlier effects
// that it names.
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
	if err := c.macrostep(workflow.Move{Step: step, From: step.Work.Via}); err != nil {
		return failed(workflow.AsError(err))
	}
	d := c.decide()
	if d.After == nil {
		return d
	}
	d.refuse(&workflow.Error{Code: codeOf(f.Kind), State: d.After.State, Message: f.Message})
	if f.Unknown {
		d.undo(p, w.Version, step, result, now)
	}
	on := transitions.Command{Tenant: d.After.Tenant, Workflow: d.After.Workflow, Instance: d.After.ID,
		Options: transitions.Options{Trace: d.Events[0].Trace}}
	for _, e := range slices.Backward(d.After.Links.Effects) { // the newest first
		if slices.Contains(step.Work.Undoes, e.Transition) {
			d.Commands = append(d.Commands, undoOf(on, d.After.Definition, e, "", now))
		}
	}
	d.After.Links.Effects = withoutEffects(d.After.Links.Effects, step.Work.Undoes)
	return d
}

// withoutEffects returns the effects of other activities, or nil for none.
func withoutEffects(effects []transitions.Effect, activities []string) (kept []transitions.Effect) {
	for _, e := range effects {
		if !slices.Contains(activities, e.Transition) {
			kept = append(kept, e)
		}
	}
	return kept
}

// codeOf returns the code of a permanent failure.
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

// undo plans the undo of the command's effect, if the activity has one, with a version of the definition.
func (d *Decision) undo(p *Prepared, definition int, step *workflow.Step, result []byte, now time.Time) {
	if step.Work.Undoable {
		d.Commands = append(d.Commands, undoOf(p.Command, definition, p.effectOf(step, result), p.by, now))
	}
}

func (p *Prepared) effectOf(step *workflow.Step, result []byte) transitions.Effect {
	return transitions.Effect{CommandRef: transitions.CommandRef{Transition: step.Name, Scope: p.Scope, Key: p.Key}, From: p.from,
		Payload: p.Canonical, Result: result}
}

// undoOf returns a command that undoes an effect, with a version of the definition. by is Request.By.
func undoOf(on transitions.Command, definition int, done transitions.Effect, by string, now time.Time) Planned {
	effect := transitions.EffectKey(transitions.Ref{Tenant: on.Tenant, Scope: done.Scope, Key: done.Key})
	on.Scope, on.Key, on.Transition, on.Actor = UndoScope(on.Instance), effect, done.Transition, transitions.Reserved+"undo"
	on.Reason = "" // that of what is undone
	p := plan(on, done.Payload, now)
	p.Flight.Phase, p.Flight.Definition = transitions.Undoing, definition
	p.Flight.Request = Request{Payload: done.Payload, From: done.From, Effect: effect, Result: done.Result, By: by, Trace: on.Trace}.encode()
	return p
}

// decideUndone records on the instance, in any state, that an effect was undone or abandoned.
func decideUndone(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	if inst == nil {
		return failed(workflow.Errorf(workflow.InstanceNotFound, "the instance of the undo is not there"))
	}
	name, reason := p.Transition+undone, ""
	f := p.Resumed.Outcome.Failure
	if f != nil { // an operator abandoned it
		name, reason = p.Transition+notUndone, shortened(f.Message, transitions.MaxReason)
	}
	c := change{p: p, w: w, inst: inst, name: name, payload: member("effect", jsontext.Value(`"`+p.effect+`"`)), now: now,
		out: unchanged(inst, reason)}
	d := c.decideAndAnswer()
	if d.After != nil && f != nil {
		d.refuse(&workflow.Error{Code: workflow.ActivityFailed, State: inst.State, Message: reason})
		d.Plain = false
	}
	return d
}

func activityOf(p *Prepared, w *workflow.Workflow) (*workflow.Step, *workflow.Error) {
	if s := w.Activity(p.Transition, p.from); s != nil {
		return s, nil
	}
	return nil, defect("version %d of workflow %q has no activity %q", w.Version, w.Name, p.Transition)
}

// member returns a JSON object with one member.
func member(name string, value jsontext.Value) jsontext.Value {
	if len(value) == 0 {
		value = jsontext.Value("null")
	}
	return jsontext.Value(fmt.Sprintf(`{%q:%s}`, name, value))
}

// shortened truncates a text to a number of bytes and removes what cannot be stored.
func shortened(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
}
