package decide

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// ChildStart is the start of a child in the transaction of its parent's transition.
type ChildStart struct {
	Prepared *Prepared
	Decision Decision
}

// maxStarts bounds what one command starts, children of children included.
const maxStarts = 100

// StartChildren decides the children that the decision asks for, and theirs. newest finds
// the newest version of a workflow, nil for none. If one child cannot be
// started, none is: that is a defect of the workflow, and the decision becomes its error.
func (d *Decision) StartChildren(newest func(name string) *workflow.Workflow, now time.Time) {
	left := maxStarts
	if err := d.startChildren(newest, now, &left); err != nil {
		*d = failed(err)
	}
}

func (d *Decision) startChildren(newest func(name string) *workflow.Workflow, now time.Time, left *int) *workflow.Error {
	if d.past && len(d.spawns) > 0 {
		return workflow.Errorf(workflow.InvalidRequest,
			"%q starts another instance, which would begin now; import that by itself, and this by a transition that does not", d.Entry.Transition)
	}
	for n, s := range d.spawns {
		if *left--; *left < 0 {
			return defect("%s.%s starts more than %d children", d.Entry.Workflow, d.Entry.Transition, maxStarts)
		}
		b, err := startChild(d, n, s, newest(s.Workflow), now)
		if err == nil {
			err = b.Decision.startChildren(newest, now, left)
		}
		if err != nil {
			return err
		}
		d.Children = append(d.Children, b)
	}
	return nil
}

func startChild(d *Decision, ordinal int, s workflow.Spawned, w *workflow.Workflow, now time.Time) (ChildStart, *workflow.Error) {
	parent := d.After
	what := fmt.Sprintf("%s.%s starts a child by %s.%s", parent.Workflow, d.Entry.Transition, s.Workflow, s.Transition)
	if w == nil {
		return ChildStart{}, defect("%s: this node knows no such workflow", what)
	}
	if start := w.Creating(s.Transition); start == nil || start.Keyed {
		return ChildStart{}, defect("%s: that is not a start without a business key", what)
	}
	p, err := prepare(transitions.Command{
		Tenant: parent.Tenant, Scope: childScope(parent.ID), Key: fmt.Sprintf("%d-%d", parent.Version, ordinal),
		Workflow: s.Workflow, Transition: s.Transition, Payload: s.Payload, Actor: d.Entry.Actor, Proof: d.Entry.Proof,
		Roles: []string{transitions.AnyRole}, Trace: d.Events[0].Trace,
	}, true, w, func() uuid.UUID { return childID(parent, ordinal) })
	if err != nil {
		return ChildStart{}, defect("%s: %w", what, err)
	}
	p.parent = &transitions.Parent{Workflow: parent.Workflow, Instance: parent.ID, End: s.End}
	b := ChildStart{Prepared: p, Decision: Decide(p, w, nil, now)}
	if b.Decision.Err != nil {
		return ChildStart{}, defect("%s: %w", what, b.Decision.Err)
	}
	return b, nil
}

// tellParent plans the command to the parent that the end of a child causes.
func (c *change) tellParent(d *Decision) {
	child := d.After
	parent := child.Links.Parent
	if child.Open || parent == nil || parent.End == "" || !c.inst.Open && c.inst.Version > 0 {
		return
	}
	payload := endOf(child)
	d.Commands = append(d.Commands, plan(transitions.Command{Tenant: child.Tenant, Scope: endScope(child.ID), Key: endKey,
		Workflow: parent.Workflow, Transition: parent.End, Instance: parent.Instance,
		Actor: transitions.Reserved + "child", Trace: c.p.Trace}, payload, c.now))
}

// endOf is the payload of that command, a workflow.Ended.
func endOf(child *transitions.Instance) []byte {
	data := child.Data
	if len(data) == 0 {
		data = []byte("{}")
	}
	b := make([]byte, 0, len(data)+128)
	b = append(b, `{"child":"`...)
	b = append(b, child.ID.String()...)
	b = append(b, `","data":`...)
	b = append(b, data...)
	b = append(b, `,"state":`...)
	b, _ = jsontext.AppendQuote(b, string(child.State))
	b = append(b, `,"workflow":`...)
	b, _ = jsontext.AppendQuote(b, child.Workflow)
	return append(b, '}')
}
