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

// A completion is the end of a child as a command to its parent. It is decided once the child has ended. If the parent refuses it by its
// state, a guard or its size, the completion is deferred: it stays in flight, the parent lists it in its links, and every later change of
// the parent that may let it be taken makes it due again. A parent that has ended takes nothing, so its history gets the completion.

const (
	endPrefix = transitions.Reserved + "end:"
	endKey    = "ended"
)

// retryDeferred bounds the time after which a deferred completion is decided again although no change of its parent has made it due. A
// transition in SQL makes none due, and neither does a node of an earlier release.
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

// complete decides what becomes of a completion that was decided as d on its parent.
func complete(p *Prepared, w *workflow.Workflow, parent *transitions.Instance, d Decision, now time.Time) Decision {
	switch {
	case d.Err == nil || d.Err.Code.Info().Retry:
		return d
	case belongs(p, parent) != nil:
		return refused(d.Err)
	case !parent.Open:
		return recordCompletion(p, w, parent, d.Err, now)
	case deferrable(d.Err.Code):
		return deferCompletion(p, w, parent, d.Err, now)
	}
	return failed(d.Err) // a defect: it is tried again, and then waits for an operator
}

// deferrable reports whether a later change of the parent may remove the reason for a refusal.
func deferrable(code workflow.Code) bool {
	switch code {
	case workflow.IllegalTransition, workflow.TransitionNotFound, workflow.GuardRefused, workflow.SeparationOfDuties,
		workflow.DataTooLarge, workflow.TooManyEffects, workflow.AlreadyExists:
		return true
	}
	return false
}

// deferCompletion keeps a completion until the parent takes it. The first time, the history of the parent gets an entry with the reason.
func deferCompletion(p *Prepared, w *workflow.Workflow, parent *transitions.Instance, why *workflow.Error, now time.Time) Decision {
	again := schedule(p, parent).Flight
	again.RunAt, again.Definition = now.Add(retryDeferred.Ceiling(p.Resumed.Attempt)), 0 // whatever version the parent is on by then
	d := Decision{Stored: true}
	known := slices.ContainsFunc(parent.Links.Deferred, func(c transitions.Completion) bool { return p.completes(c.Child) })
	if child, err := uuid.Parse(strings.TrimPrefix(p.Scope, endPrefix)); err == nil && !known {
		c := change{p: p, w: w, inst: parent, name: p.Transition + deferredEntry, now: now,
			payload: member("child", []byte(`"`+child.String()+`"`)),
			out:     workflow.Outcome{To: parent.State, Data: parent.Data, Reason: shortened(why.Message, transitions.MaxReason)}}
		if d = c.decide(); d.After == nil {
			return d
		}
		d.After.Links.Deferred = append(slices.Clip(d.After.Links.Deferred), transitions.Completion{Child: child, End: p.Transition})
	}
	d.Status, d.Code, d.Flight = transitions.Pending, 202, again
	return d
}

// recordCompletion writes a completion that the parent does not take into the parent's history, and ends it with the error.
func recordCompletion(p *Prepared, w *workflow.Workflow, parent *transitions.Instance, why *workflow.Error, now time.Time) Decision {
	c := change{p: p, w: w, inst: parent, name: p.Transition + notTakenEntry, payload: p.Canonical, now: now,
		out: workflow.Outcome{To: parent.State, Data: parent.Data, Reason: shortened(why.Message, transitions.MaxReason)}}
	d := c.decide()
	if d.After == nil {
		return d
	}
	problem := transitions.ProblemOf(&workflow.Error{Code: why.Code, State: parent.State, Message: why.Message}).Kept()
	d.Err, d.Status, d.Code, d.Body = why, transitions.FailedFinal, problem.Status, problem.JSON()
	return d
}

// dueCompletions removes the completion that the change takes from the deferred ones, and makes those due that the change may let be taken.
func (c *change) dueCompletions(d *Decision) {
	before := c.inst.Links.Deferred
	if len(before) == 0 {
		return
	}
	var left []transitions.Completion
	for _, one := range before {
		if !c.p.completes(one.Child) {
			left = append(left, one)
		}
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
