package decide

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A completion is the end of a child as a command to its parent. If the parent refuses it by its state, a guard or its size, the
// completion is deferred: it stays in flight, the parent lists it in its links, and each later change of the parent that may allow it makes
// it due again. A completion for an ended parent is only recorded in the parent's history.

const (
	endPrefix = transitions.Reserved + "end:"
	endKey    = "ended"
)

// retryDeferred is the backoff of deferred completions that no change of the parent makes due. Transitions in SQL and nodes of earlier
// releases make none due.
var retryDeferred = workflow.Retry{First: time.Minute, Max: time.Hour}

// isCompletion reports whether the command is the completion of a child.
func (p *Prepared) isCompletion() bool { return strings.HasPrefix(p.Scope, endPrefix) }

// completes reports whether the command is the completion of this child, or abandons it.
func (p *Prepared) completes(child uuid.UUID) bool {
	if o := p.Operation; o != nil {
		return o.Action == transitions.Abandon && o.Target.Scope == endScope(child)
	}
	return p.Scope == endScope(child)
}

// complete returns the decision on a completion, given the decision d of its transition on the parent.
func complete(p *Prepared, w *workflow.Workflow, parent *transitions.Instance, d Decision, now time.Time) Decision {
	switch {
	case d.Err == nil || d.Err.Code.Info().Retry:
		return d
	case belongs(p, parent) != nil:
		return refused(d.Err)
	case !parent.Open:
		return recordCompletion(p, w, parent, d.Err, now)
	case slices.Contains(deferrable, d.Err.Code):
		return deferCompletion(p, w, parent, d.Err, now)
	}
	return failed(d.Err) // a defect: retried, then waits for an operator
}

// deferrable are the codes of refusals that a later change of the parent may remove.
var deferrable = []workflow.Code{workflow.IllegalTransition, workflow.TransitionNotFound, workflow.GuardRefused,
	workflow.SeparationOfDuties, workflow.DataTooLarge, workflow.TooManyEffects, workflow.AlreadyExists}

// deferCompletion defers a completion. The first time, it records the reason in the parent's history.
func deferCompletion(p *Prepared, w *workflow.Workflow, parent *transitions.Instance, why *workflow.Error, now time.Time) Decision {
	again := schedule(p, parent).Flight
	again.RunAt, again.Definition = now.Add(retryDeferred.Ceiling(p.Resumed.Attempt)), 0 // the parent may be migrated by then
	d := Decision{Stored: true}
	known := slices.ContainsFunc(parent.Links.Deferred, func(c transitions.Completion) bool { return p.completes(c.Child) })
	if child, err := uuid.Parse(strings.TrimPrefix(p.Scope, endPrefix)); err == nil && !known {
		c := change{p: p, w: w, inst: parent, name: p.Transition + deferredEntry, now: now,
			payload: member("child", []byte(`"`+child.String()+`"`)), out: unchanged(parent, shortened(why.Message, transitions.MaxReason))}
		if d = c.decide(); d.After == nil {
			return d
		}
		d.After.Links.Deferred = append(slices.Clip(d.After.Links.Deferred), transitions.Completion{Child: child, End: p.Transition})
	}
	d.Status, d.Code, d.Flight = transitions.Pending, 202, again
	return d
}

// recordCompletion records a refused completion in the parent's history and completes its command with the error.
func recordCompletion(p *Prepared, w *workflow.Workflow, parent *transitions.Instance, why *workflow.Error, now time.Time) Decision {
	c := change{p: p, w: w, inst: parent, name: p.Transition + notTakenEntry, payload: p.Canonical, now: now,
		out: unchanged(parent, shortened(why.Message, transitions.MaxReason))}
	d := c.decide()
	if d.After != nil {
		d.refuse(&workflow.Error{Code: why.Code, State: parent.State, Message: why.Message})
	}
	return d
}

// dueCompletions removes the completion of this command from the deferred ones, and makes due those that the change may allow.
func (c *change) dueCompletions(d *Decision) {
	if len(c.inst.Links.Deferred) == 0 {
		return
	}
	completes := func(x transitions.Completion) bool { return c.p.completes(x.Child) }
	left := slices.DeleteFunc(slices.Clone(c.inst.Links.Deferred), completes)
	if len(left) == 0 {
		left = nil
	}
	after := d.After
	after.Links.Deferred = left
	if after.State == c.inst.State && c.plan == nil && bytes.Equal(after.Data, c.inst.Data) {
		return
	}
	w := c.w
	if c.plan != nil {
		w = c.plan.To
	}
	for _, one := range left {
		if !after.Open || w.Leaving(one.End, after.State) != nil {
			d.Due = append(d.Due, transitions.CommandRef{Transition: one.End, Scope: endScope(one.Child), Key: endKey})
		}
	}
}
