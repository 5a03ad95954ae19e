package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The steps that the engine, with tables, and a simulation, with memory, share.

// Find finds a version of a workflow, the newest for 0; nil where it is not known.
type Find func(name string, version int) *workflow.Workflow

// VersionFor returns the version of the workflow that decides a command: the instance's, or the newest for a new instance. Error:
// NotOnThisNode if this node does not know that version; another node may.
func VersionFor(p *Prepared, inst *transitions.Instance, find Find) (*workflow.Workflow, error) {
	if inst == nil {
		return p.Definition, nil
	}
	w := find(inst.Workflow, inst.Definition)
	if w == nil {
		return nil, workflow.Errorf(workflow.NotOnThisNode,
			"this node does not know version %d of workflow %q, which the instance is on", inst.Definition, inst.Workflow)
	}
	return w, nil
}

// DecideAll is Decide including the children that the decision starts. taken reports existing children.
func DecideAll(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, find Find, taken Taken, now time.Time) Decision {
	newest := func(name string) *workflow.Workflow { return find(name, 0) }
	d := Decide(p, w, inst, now)
	d.startChildren(newest, taken, now)
	if d.Err == nil || d.Err.Code != workflow.AlreadyExists || d.Stored || p.Operation != nil {
		return d
	}
	// The key of a child is taken, which is an outcome as of a guard.
	switch e := *d.Err; {
	case p.Resumed != nil && p.Resumed.Phase == transitions.Working:
		refusing := *p
		refusing.refusal = &e
		d = Decide(&refusing, w, inst, now)
		d.startChildren(newest, taken, now)
	case p.isCompletion():
		d = complete(p, w, inst, refused(&e), now)
	default:
		if inst != nil {
			e.State = inst.State
		}
		d = refused(&e)
	}
	return d
}

// HeldBy reports whether an attempt is the newest of its command and holds its lease. The record is nil if the command does not exist.
func HeldBy(r *transitions.Record, attempt *Resumed) bool {
	return r != nil && r.Status == transitions.Processing && r.Attempt == attempt.Attempt
}

// ErrNotHeld is the answer to an attempt that does not hold its command.
func ErrNotHeld() error {
	return workflow.Errorf(workflow.LeaseLost, "the command is not, or no longer, held by this attempt")
}

// ReceiptOf returns the answer to a command whose decision is stored. position is that of its transition, or 0 if it has none yet.
func ReceiptOf(p *Prepared, d *Decision, position int64) transitions.Receipt {
	return transitions.Receipt{Status: d.Code, Instance: p.Instance, Version: d.Entry.Version, Position: position,
		Body: transitions.WithPosition(d.Body, position)}
}
