package commit

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Flights executes commands in flight.
type Flights interface {
	// Reserve takes a free worker for an activity that is about to start. It returns false if no worker is free; then the next free worker of
	// any node claims the command when it is due.
	Reserve(workflow string, step *workflow.Step) bool
	// Release returns a reserved worker whose command did not start.
	Release(workflow string, step *workflow.Step)
	// Updated tells what a commit made of commands in flight. It must not block.
	Updated(list []decide.FlightUpdate)
}

// begins reports whether the command starts new work instead of continuing earlier work.
func (o *op) begins() bool {
	return o.p.Operation == nil && (o.p.Resumed == nil || o.p.Resumed.Outcome == nil)
}

// target returns the key of the operation's target.
func (o *op) target() (commandKey, bool) {
	if o.p.Operation == nil || o.p.Operation.Target.Scope == "" {
		return commandKey{}, false
	}
	return commandKey{o.p.Operation.Target.Scope, o.p.Operation.Target.Key}, true
}

// aimed returns the command with the record of its operation's target.
func (t *part) aimed(o *op) (*decide.Prepared, error) {
	key, ok := o.target()
	if !ok {
		return o.p, nil
	}
	known := t.keyStates[key]
	if known.moved {
		return nil, workflow.Errorf(workflow.Locked, "another operation changed the command; try again with the same key")
	}
	aimed := *o.p
	if _, void := t.disarmed[key.scope]; !void {
		aimed.Stuck = known.record
	}
	return &aimed, nil
}

// noteOthers records the effects of a decision on other commands.
func (t *part) noteOthers(o *op) {
	d := &o.decision
	for _, scope := range d.Disarmed {
		t.disarm(scope)
	}
	t.planned = append(t.planned, d.Commands...)
	if d.Migrated {
		// Commands that this group puts in flight on the instance also have the new version.
		t.migrated = append(t.migrated, store.MigratedFlightsOf(d.After))
		for _, o := range t.stored {
			if f := o.decision.Flight; f != nil && o.p.Instance == d.After.ID {
				f.Definition = d.After.Definition
			}
		}
		for n := range t.planned {
			if t.planned[n].Instance == d.After.ID && t.planned[n].Flight.Definition != 0 {
				t.planned[n].Flight.Definition = d.After.Definition
			}
		}
	}
	if d.Resumed && !slices.Contains(t.resumed, o.p.Instance) {
		t.resumed = append(t.resumed, o.p.Instance)
	}
	for _, c := range d.Due {
		if known := t.keyStates[commandKey{c.Scope, c.Key}]; known == nil || known.leader == nil {
			if !slices.ContainsFunc(t.due, func(due store.Due) bool { return due.CommandRef == c }) {
				t.due = append(t.due, store.Due{CommandRef: c, At: d.Entry.At})
			}
		} else if f := known.leader.decision.Flight; f != nil { // this group has deferred it
			f.RunAt = d.Entry.At
		}
	}
	if d.Cancelled != nil {
		t.cancelled = append(t.cancelled, store.Cancelled{CommandRef: *d.Cancelled, By: o.p.Actor})
		if c := t.keyStates[commandKey{d.Cancelled.Scope, d.Cancelled.Key}]; c != nil && c.leader != nil {
			c.leader.stopped = true
		}
	}
	if d.Target != nil {
		t.keyStates[commandKey{d.Target.Scope, d.Target.Key}].moved = true
	}
}

// disarm cancels planned commands of a scope that are not decided yet, also those planned by this group. Commands that the group itself
// settles are not deleted.
func (t *part) disarm(scope string) {
	kept := t.planned[:0]
	for _, c := range t.planned {
		if c.Scope != scope {
			kept = append(kept, c)
		}
	}
	t.planned = kept
	spare := ""
	for _, o := range t.stored {
		target := o.decision.Target
		switch {
		case o.p.Resumed != nil && o.p.Scope == scope:
			spare = o.p.Key
		case target == nil || target.Scope != scope:
		case target.Flight != nil:
			o.decision.Target = nil // its retry is cancelled
		default:
			spare = target.Key
		}
	}
	if t.disarmed == nil {
		t.disarmed = map[string]string{}
	}
	if t.disarmed[scope] == "" {
		t.disarmed[scope] = spare
	}
}

// reserve reserves workers for the activities that the group accepts.
func (g *group) reserve() {
	if g.config.Flights == nil {
		return
	}
	g.leased = time.Now()
	for _, t := range g.parts {
		for _, o := range t.stored {
			if o.working() && !o.stopped {
				o.leased = g.config.Flights.Reserve(o.decision.After.Workflow, o.decision.Step)
			}
		}
	}
}

func (g *group) unreserve() {
	for _, t := range g.parts {
		for _, o := range t.stored {
			if o.leased {
				o.leased = false
				g.config.Flights.Release(o.decision.After.Workflow, o.decision.Step)
			}
		}
	}
}

// markAmbiguous records the attempts that the group leased if its commit succeeded. The outcome is unknown because the connection was lost.
func (g *group) markAmbiguous() {
	for _, o := range g.ops {
		o.uncertain = true
	}
	for _, t := range g.parts {
		for _, o := range t.stored {
			if o.leased {
				l := decide.InFlight{Ref: transitions.Ref{Tenant: t.tenant, Scope: o.p.Scope, Key: o.p.Key}, Attempt: attemptOf(o) + 1}
				if o.p.Resumed == nil {
					l.CreatedAt = g.now
				}
				o.ambiguous = append(o.ambiguous, l)
			}
		}
	}
}

// reportAmbiguous reports the attempts that settled ops may have leased in commits of unknown outcome.
func (pipe *Pipeline) reportAmbiguous(ops []*op) {
	var list []decide.FlightUpdate
	for _, o := range ops {
		for _, l := range o.ambiguous {
			list = append(list, decide.FlightUpdate{Ambiguous: true, InFlight: l})
		}
		o.ambiguous = nil
	}
	if len(list) > 0 {
		pipe.config.Flights.Updated(list)
	}
}

func (o *op) working() bool {
	return o.decision.Flight != nil && o.decision.Flight.Phase == transitions.Working
}

// plain reports whether the statements of a group of one cover all effects of the command.
func (o *op) plain() bool {
	d := &o.decision
	return o.p.Tombstone == 0 && !d.Resumed && !d.Migrated && d.Due == nil && d.Flight == nil && d.Target == nil && d.Cancelled == nil &&
		len(d.Commands) == 0 && len(d.Disarmed) == 0 && len(d.Children) == 0 && len(d.Events) <= 1
}

// flightUpdates returns the changes of commands in flight.
func (g *group) flightUpdates() (list []decide.FlightUpdate) {
	for _, t := range g.parts {
		for _, o := range t.stored {
			if o.decision.Flight != nil || o.decision.Target != nil || o.p.Resumed != nil {
				list = g.updatesOf(list, t, o)
			}
		}
		for _, c := range t.planned {
			list = append(list, decide.FlightUpdate{Status: transitions.Pending, InFlight: decide.InFlight{
				Ref: transitions.Ref{Tenant: t.tenant, Scope: c.Scope, Key: c.Key}, Phase: c.Flight.Phase, RunAt: c.Flight.RunAt,
				Workflow: c.Workflow, Transition: c.Transition, Instance: c.Instance}})
		}
		for range len(t.resumed) + len(t.due) { // a command that waited may be due
			list = append(list, decide.FlightUpdate{Status: transitions.Pending,
				InFlight: decide.InFlight{Phase: transitions.Scheduled, RunAt: g.now}})
		}
		for _, c := range t.cancelled {
			list = append(list, decide.FlightUpdate{Stop: true, InFlight: decide.InFlight{
				Ref: transitions.Ref{Tenant: t.tenant, Scope: c.Scope, Key: c.Key}}})
		}
	}
	return list
}

func (g *group) updatesOf(list []decide.FlightUpdate, t *part, o *op) []decide.FlightUpdate {
	d := &o.decision
	l := decide.FlightUpdate{Status: d.Status, Leased: o.leased, InFlight: decide.InFlight{
		Ref: transitions.Ref{Tenant: t.tenant, Scope: o.p.Scope, Key: o.p.Key}, Fingerprint: o.p.Fingerprint,
		Workflow: o.p.Workflow, Transition: o.p.Transition, Instance: o.p.Instance, Actor: o.p.Actor}}
	switch {
	case d.Flight != nil:
		l.Phase, l.RunAt, l.Request, l.Attempt = d.Flight.Phase, d.Flight.RunAt, d.Flight.Request, attemptOf(o)
		if o.leased {
			l.Status, l.Attempt, l.RunAt, l.CreatedAt = transitions.Processing, l.Attempt+1, time.Time{}, g.now
			l.Definition, l.Data, l.Since = d.After.Definition, d.After.Data, g.leased
		}
		list = append(list, l)
	case o.p.Resumed != nil:
		receipt := o.receipt
		l.Receipt, l.Attempt = &receipt, o.p.Resumed.Attempt
		list = append(list, l)
	}
	if target := d.Target; target != nil {
		l := decide.FlightUpdate{Status: target.Status, InFlight: decide.InFlight{
			Ref: transitions.Ref{Tenant: t.tenant, Scope: target.Scope, Key: target.Key}, Attempt: target.Attempt}}
		if target.Flight != nil {
			l.Phase, l.RunAt = target.Flight.Phase, target.Flight.RunAt
		} else {
			var position int64 // that of the target's own version, as for a replay
			if target.Version == d.Entry.Version {
				position = o.receipt.Position
			}
			l.Receipt = &transitions.Receipt{Status: target.Code, Instance: o.p.Instance, Version: target.Version,
				Position: position, Body: transitions.WithPosition(target.Body, position)}
		}
		list = append(list, l)
	}
	return list
}

// attemptOf returns the attempt with which the command continues.
func attemptOf(o *op) int {
	if o.p.Resumed == nil {
		return 0
	}
	return o.p.Resumed.Attempt
}
