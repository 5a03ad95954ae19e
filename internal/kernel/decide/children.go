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

// Taken reports whether an instance of the command's tenant has the id. It is only called for children with a business key.
type Taken func(id uuid.UUID) bool

type starter struct {
	newest func(name string) *workflow.Workflow // the newest version of a workflow, nil if it is not known
	taken  Taken
	now    time.Time
	left   int
	keyed  map[uuid.UUID]bool // the instance of the command, and children with a business key so far
}

// startChildren decides the children that the decision starts, and their children. If one cannot be started the decision becomes an error:
// AlreadyExists for a business key that is taken, otherwise Internal, because it is a defect of the workflow.
func (d *Decision) startChildren(newest func(name string) *workflow.Workflow, taken Taken, now time.Time) {
	if len(d.spawns) == 0 {
		return
	}
	s := &starter{newest: newest, taken: taken, now: now, left: maxStarts, keyed: map[uuid.UUID]bool{d.After.ID: true}}
	if err := s.start(d); err != nil {
		*d = failed(err)
	}
}

func (s *starter) start(d *Decision) *workflow.Error {
	if d.past && len(d.spawns) > 0 {
		return invalid("%q starts another instance, which would begin now; import that by itself, and this by a transition that does not", d.Entry.Transition)
	}
	for n, one := range d.spawns {
		if s.left--; s.left < 0 {
			return defect("%s.%s starts more than %d children", d.Entry.Workflow, d.Entry.Transition, maxStarts)
		}
		b, err := s.child(d, n, one)
		if err == nil {
			err = s.start(&b.Decision)
		}
		if err != nil {
			return err
		}
		d.Children = append(d.Children, b)
	}
	return nil
}

func (s *starter) child(d *Decision, ordinal int, asked workflow.Spawned) (ChildStart, *workflow.Error) {
	parent, w := d.After, s.newest(asked.Workflow)
	what := fmt.Sprintf("%s.%s starts a child by %s.%s", parent.Workflow, d.Entry.Transition, asked.Workflow, asked.Transition)
	if w == nil {
		return ChildStart{}, defect("%s: this node knows no such workflow", what)
	}
	switch start := w.Creating(asked.Transition); {
	case start == nil:
		return ChildStart{}, defect("%s: that is not a start", what)
	case start.Keyed && asked.BusinessKey == "":
		return ChildStart{}, defect("%s: that start has a business key, and the child names none", what)
	case !start.Keyed && asked.BusinessKey != "":
		return ChildStart{}, defect("%s: that start has no business key, and the child names one", what)
	}
	p := &Prepared{Creates: true, Command: transitions.Command{
		Tenant: parent.Tenant, Key: fmt.Sprintf("%d-%d", parent.Version, ordinal),
		Workflow: asked.Workflow, Transition: asked.Transition, BusinessKey: asked.BusinessKey, Payload: asked.Payload,
		Actor: d.Entry.Actor, Roles: []string{transitions.AnyRole}, Options: transitions.Options{Scope: childScope(parent.ID),
			Proof: d.Entry.Proof, Trace: d.Events[0].Trace},
	}}
	err := p.check()
	if err == nil {
		err = p.Resolve(func() uuid.UUID { return asked.ID }, w)
	}
	if err != nil {
		return ChildStart{}, defect("%s: %w", what, err)
	}
	p.parent = &transitions.Parent{Workflow: parent.Workflow, Instance: parent.ID, End: asked.End}
	if asked.BusinessKey != "" {
		if s.keyed[p.Instance] || s.taken(p.Instance) {
			return ChildStart{}, workflow.Errorf(workflow.AlreadyExists,
				"workflow %q has an instance with the business key %q already, which the child would have", asked.Workflow, asked.BusinessKey)
		}
		s.keyed[p.Instance] = true
		p.parent.Place = p.Key
	}
	b := ChildStart{Prepared: p, Decision: Decide(p, w, nil, s.now)}
	if b.Decision.Err != nil {
		return ChildStart{}, defect("%s: %w", what, b.Decision.Err)
	}
	return b, nil
}

// tellParent plans the command to the parent that the completion of a child causes.
func (c *change) tellParent(d *Decision) {
	child := d.After
	parent := child.Links.Parent
	if child.Open || parent == nil || parent.End == "" || !c.inst.Open && c.inst.Version > 0 {
		return
	}
	payload := endOf(child)
	d.Commands = append(d.Commands, plan(transitions.Command{Tenant: child.Tenant, Key: endKey,
		Workflow: parent.Workflow, Transition: parent.End, Instance: parent.Instance,
		Actor: transitions.Reserved + "child", Options: transitions.Options{Scope: endScope(child.ID), Trace: c.p.Trace}}, payload, c.now))
}

// endOf returns the payload of that command, a workflow.Ended.
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
