package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Suffixes of an activity's transitions in the log; its success has the name alone. Declared names have no dot.
const (
	accepted  = ".accepted"
	gaveUp    = ".failed"
	undone    = ".undone"
	notUndone = ".not_undone"

	deferredEntry = ".deferred"  // of the completion of a child
	notTakenEntry = ".not_taken" // likewise

	resumedEntry  = "pawl.resumed"
	migratedEntry = "pawl.migrated"
)

// PausedEntry names the pause of an instance in the log.
const PausedEntry = "pawl.paused"

// change is a transition of an instance to be decided.
type change struct {
	p       *Prepared
	w       *workflow.Workflow
	step    *workflow.Step
	inst    *transitions.Instance // before it
	out     workflow.Outcome
	name    string         // in the log
	payload jsontext.Value // in the audit row
	now     time.Time
	plan    *workflow.Migration // to another version of the definition; nil for none
	remains bool                // the effect of a failed activity may have happened and cannot be undone

	settled   bool     // out is that of the macrostep
	automatic []string // transitions that it has taken, in order
}

// decide returns the instance after the change, its audit row and events, and the changes of its timers and command in flight.
func (c *change) decide() Decision {
	if !c.settled && c.plan == nil {
		if err := c.macrostep(); err != nil {
			return unwilling(err, c.inst)
		}
	}
	if problem := transitions.TextProblem(c.out.Reason, transitions.MaxReason); problem != "" {
		return failed(defect("the reason that %s.%s gives %s", c.p.Workflow, c.name, problem))
	}
	switch {
	case c.p.because != "": // an operator's reason overrides that of the code
		c.out.Reason = c.p.because
	case c.out.Reason == "":
		c.out.Reason = c.p.Reason
	}
	attrs, err := c.w.AttributesOf(c.out.Data)
	if err != nil {
		return failed(workflow.AsError(err))
	}
	for name, value := range attrs {
		if strings.IndexByte(value, 0) >= 0 { // the database would refuse it
			return failed(defect("attribute %q of %s contains a NUL", name, c.w.Name))
		}
	}
	after := *c.inst
	after.State, after.Version, after.Data = c.out.To, c.inst.Version+1, c.out.Data
	after.Attributes = c.attributes(attrs)
	after.Open, after.UpdatedAt = !c.w.IsFinal(c.out.To), c.now
	after.Actors = c.actors()
	d := Decision{Stored: true, Status: transitions.Succeeded, Code: 200, Answer: c.out.KeepAnswer,
		Step: c.step, After: &after, spawns: c.out.Spawns, past: !c.p.HappenedAt.IsZero()}
	if left := c.inst.Links.InFlight; left != nil && after.State != c.inst.State && c.plan == nil {
		after.Links.InFlight = nil
		if left.Scope != c.p.Scope || left.Key != c.p.Key {
			d.Cancelled = left
		}
	}
	if c.plan != nil {
		c.migrate(&after)
	}
	d.Entry = transitions.Entry{
		Tenant: c.p.Tenant, Instance: after.ID, Version: after.Version, Workflow: after.Workflow,
		Transition: c.name, From: c.inst.State, To: after.State, Actor: c.p.Actor, Proof: c.p.Proof, Reason: c.out.Reason,
		Payload: c.payload, Data: after.Data, Scope: c.p.Scope, Key: c.p.Key, Cause: c.storedCause(),
		At: c.now,
	}
	var e *workflow.Error
	if d.Events, e = c.events(&d.Entry, &after); e != nil {
		return failed(e)
	}
	setTimers := c.setTimers
	if c.plan != nil {
		setTimers = c.moveTimers
	}
	if err := setTimers(&d); err != nil {
		return failed(workflow.AsError(err))
	}
	c.tellParent(&d)
	c.dueCompletions(&d)
	return d
}

// unchanged is the outcome of a change that only adds a version and an audit row.
func unchanged(inst *transitions.Instance, reason string) workflow.Outcome {
	return workflow.Outcome{To: inst.State, Data: inst.Data, Reason: reason}
}

// decideAndAnswer is decide for a command that completes with the change.
func (c *change) decideAndAnswer() Decision {
	d := c.decide()
	if d.After != nil {
		c.answer(&d)
	}
	return d
}

// answer sets the answer of a completed command.
func (c *change) answer(d *Decision) {
	d.Plain = len(d.Overdue) == 0
	if len(c.out.Result) > 0 {
		d.Result = c.out.Result
	}
	d.Body = Answer(transitions.Result{Instance: d.After.ID, Workflow: d.After.Workflow, Transition: c.p.Transition, State: d.After.State,
		Version: d.After.Version, At: c.now, Result: c.out.Result, Overdue: d.Overdue})
}

// setTimers arms and disarms the timers that depend on the state or the data.
func (c *change) setTimers(d *Decision) error {
	before, after := c.inst, d.After
	for _, t := range c.w.Timers {
		was, is := before.Version > 0 && t.Runs(before.State), t.Runs(after.State)
		if !was && !is {
			continue
		}
		var due time.Time
		var err error
		if is {
			if due, err = t.Due(c.p.asOf(c.now), after.Data); err != nil {
				return err
			}
			if err := c.tooLate(t.Name, due); err != nil {
				return err
			}
		}
		if was && is {
			if !t.FromData() {
				continue // it runs on
			}
			old, err := t.Due(c.now, before.Data)
			if err != nil {
				return err
			}
			if old.Equal(due) {
				continue
			}
		}
		if was {
			d.Disarmed = append(d.Disarmed, TimerScope(after.ID, t.Name))
		}
		c.arm(d, t, due)
	}
	return nil
}

// arm plans the command of a timer. The zero time means never.
func (c *change) arm(d *Decision, t *workflow.Timer, due time.Time) {
	if due.IsZero() {
		return
	}
	p := plan(transitions.Command{Tenant: d.After.Tenant, Key: fmt.Sprint(d.After.Version), Workflow: d.After.Workflow, Transition: t.Do,
		Instance: d.After.ID, Actor: transitions.Reserved + "timer",
		Options: transitions.Options{Scope: TimerScope(d.After.ID, t.Name), Trace: c.p.Trace}},
		nil, c.fires(d, t, due).UTC().Truncate(time.Microsecond))
	p.Flight.Definition = d.After.Definition
	d.Commands = append(d.Commands, p)
}

// tooLate refuses a time that cannot be stored.
func (c *change) tooLate(t string, due time.Time) error {
	if due.UTC().Year() > maxYear {
		return defect("timer %q of %s fires after the year %d", t, c.w.Name, maxYear)
	}
	return nil
}

// plan returns a scheduled command of Pawl's own.
func plan(c transitions.Command, payload []byte, due time.Time) Planned {
	if payload == nil {
		payload = []byte("{}")
	}
	p := Prepared{Command: c, Canonical: payload}
	return Planned{Scope: c.Scope, Key: c.Key, Fingerprint: p.fingerprint(), Workflow: c.Workflow, Transition: c.Transition,
		Instance: c.Instance, Actor: c.Actor,
		Flight: Flight{Phase: transitions.Scheduled, RunAt: due,
			Request: Request{Payload: payload, Roles: []string{transitions.AnyRole}, Trace: c.Trace}.encode()}}
}

func defect(format string, args ...any) *workflow.Error {
	return &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed", Cause: fmt.Errorf(format, args...)}
}

// events returns the events of the transition.
func (c *change) events(e *transitions.Entry, after *transitions.Instance) ([]transitions.Event, *workflow.Error) {
	emitted := c.out.Events
	event := transitions.Event{
		Tenant: e.Tenant, Type: e.Workflow + "." + e.Transition, Workflow: e.Workflow, Instance: e.Instance,
		BusinessKey: after.BusinessKey, Attributes: after.Attributes, Version: e.Version, Transition: e.Transition, From: e.From,
		State: e.To, Actor: e.Actor, Reason: e.Reason, Scope: e.Scope, Key: e.Key, At: e.At, Payload: e.Data, Trace: c.p.Trace,
	}
	event.Cause, event.CausedBy = transitions.CauseOf(e.Cause, e.Scope, e.Key)
	events := append(make([]transitions.Event, 0, 1+len(emitted)), event)
	for i, x := range emitted {
		if x.Type == events[0].Type {
			return nil, defect("transition %q emits an event of type %q, which is that of every such transition", e.Transition, x.Type)
		}
		event.Ordinal, event.Type, event.Payload = i+1, x.Type, x.Payload
		events = append(events, event)
	}
	return events, nil
}

// storedCause returns the cause of the transition, or "" if its scope implies it.
func (c *change) storedCause() transitions.Cause { return c.p.storedCause().WithAutomatic(c.automatic) }

func (p *Prepared) storedCause() transitions.Cause {
	if p.Operation != nil || p.settled {
		return transitions.CausedByOperator
	}
	if !p.HappenedAt.IsZero() {
		return transitions.Imported(p.HappenedAt)
	}
	return ""
}

// Actors of transitions that exclude each other, by transition. The actor who requested an activity is kept under the name of its start
// until it completes: a failure without effect does not count. The newest actor is the last.

// actors returns the actors after the change, without modifying those of the instance.
func (c *change) actors() map[string][]string {
	actors := c.inst.Actors
	left := c.inst.Links.InFlight // the instance may leave its in-between state without it
	leaves := left != nil && c.plan == nil && c.out.To != c.inst.State && (left.Scope != c.p.Scope || left.Key != c.p.Key)
	if leaves && c.w.Watched(left.Transition) {
		remains := slices.ContainsFunc(c.w.Moving(left.Transition), func(s *workflow.Step) bool { return s.Work != nil && !s.Work.Undoable })
		actors = c.ended(actors, left.Transition, remains)
	}
	if c.step == nil {
		if c.p.by != "" && c.name == c.p.Transition+notUndone {
			actors = c.did(actors, c.p.Transition, c.p.by)
		}
		return c.newRound(actors, c.automatic...)
	}
	name := c.step.Name
	if c.name == name {
		actors = c.newRound(actors, name)
	}
	return c.newRound(c.stepActors(actors, name), c.automatic...)
}

// newRound returns the actors without those that no longer count after the transitions.
func (c *change) newRound(actors map[string][]string, names ...string) map[string][]string {
	for _, name := range names {
		keys := c.w.NewRound(name)
		if slices.ContainsFunc(keys, func(key string) bool { return actors[key] != nil }) {
			actors = maps.Clone(actors)
			maps.DeleteFunc(actors, func(key string, _ []string) bool { return slices.Contains(keys, key) })
		}
	}
	return actors
}

// stepActors returns the actors after the step that the command asks for.
func (c *change) stepActors(actors map[string][]string, name string) map[string][]string {
	switch {
	case !c.w.Watched(name):
	case c.name == name && c.step.Work == nil:
		return c.did(actors, name, c.p.Actor)
	case c.name == name:
		return c.ended(c.did(actors, name, c.p.Actor), name, true)
	case c.name == name+accepted:
		return c.didAs(actors, c.name, c.p.Actor)
	default:
		return c.ended(actors, name, c.remains)
	}
	return actors
}

// ended returns the actors after an activity has completed. done: its requester counts as having done it.
func (c *change) ended(actors map[string][]string, name string, done bool) map[string][]string {
	asked := actors[name+accepted]
	if asked == nil {
		return actors
	}
	actors = maps.Clone(actors)
	delete(actors, name+accepted)
	for _, actor := range asked {
		if done {
			actors = c.did(actors, name, actor)
		}
	}
	return actors
}

// did returns the actors after a transition.
func (c *change) did(actors map[string][]string, transition, actor string) map[string][]string {
	for _, key := range c.w.ActorsKeys(transition) {
		actors = c.didAs(actors, key, actor)
	}
	return actors
}

// didAs adds an actor under a key.
func (c *change) didAs(actors map[string][]string, key, actor string) map[string][]string {
	list := actors[key]
	i := slices.Index(list, actor)
	if i >= 0 && (i == len(list)-1 || !c.w.WatchedLast(key)) {
		return actors
	}
	out := make(map[string][]string, len(actors)+1)
	maps.Copy(out, actors)
	others := slices.DeleteFunc(slices.Clone(list), func(a string) bool { return a == actor })
	out[key] = append(others, actor)
	return out
}
