package decide

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
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
		return invalid("%q starts another instance, which would begin now; import that by itself, and this by a transition that does not",
			d.Entry.Transition)
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
		Actor: d.Entry.Actor, Roles: []string{transitions.AnyRole}, Options: transitions.Options{
			Scope: transitions.Reserved + "child:" + parent.ID.String(), Proof: d.Entry.Proof, Trace: d.Events[0].Trace},
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
	payload := append(b, '}')
	d.Commands = append(d.Commands, plan(transitions.Command{Tenant: child.Tenant, Key: endKey,
		Workflow: parent.Workflow, Transition: parent.End, Instance: parent.Instance,
		Actor: transitions.Reserved + "child", Options: transitions.Options{Scope: endScope(child.ID), Trace: c.p.Trace}}, payload, c.now))
}

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
