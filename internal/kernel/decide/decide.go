// Package decide implements the life of one command with pure functions and values: its fingerprint ([Prepare]), the meaning of an earlier
// attempt with the same key ([Classify]), its effect on an instance ([Decide]), and, for a command in flight, its state after an attempt
// ([InFlight], [Verdict]).
//
// The input is a definition, an instance, a command and a time; the output is a [Decision] as data: the instance after it, the audit entry,
// the events, the answer. The package uses no clock and no database, so that the same decision can be made again when a transaction has to
// be retried.
package decide

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Decision is the effect of a command, as data.
type Decision struct {
	Err    *workflow.Error    // why the command is not done, or nil
	Stored bool               // the outcome belongs to the key for good, refusals included
	Status transitions.Status // of the command, where Stored
	Code   int                // the HTTP status of the answer
	Body   []byte             // the answer without its position; see WithPosition
	Result jsontext.Value     // in the Body of a transition; nil for none
	Plain  bool               // Body is the Answer that the transition itself makes
	Flight *Flight            // the command stays in flight; nil: it is finished
	Answer time.Duration      // how long the answer is replayed at least

	// Of a command that changes the instance:
	Step     *workflow.Step
	After    *transitions.Instance // nil: the instance does not change
	Entry    transitions.Entry     // without Position and Hash
	Events   []transitions.Event   // without Position
	Children []ChildStart          // filled by StartChildren
	Overdue  []transitions.OverdueTimer

	// What becomes of other commands:
	Commands  []Planned                // that begin in flight
	Disarmed  []string                 // scopes whose commands in flight are void
	Cancelled *transitions.CommandRef  // the instance leaves the state that this one would take it on from
	Target    *Target                  // the one that an operation is about
	Resumed   bool                     // those that the pause of the instance has held are due
	Due       []transitions.CommandRef // deferred completions of children that are decided again
	Migrated  bool                     // commands in flight of the instance continue with the version that it has now

	spawns []workflow.Spawned
	past   bool // it is an import
}

// Flight describes how a command continues in flight.
type Flight struct {
	Phase   transitions.Phase
	RunAt   time.Time
	Request []byte
	Stuck   string // why it waits for an operator, and not for RunAt

	Definition int // the version that its instance is on; 0: not known here, or as it was
}

// Planned is a command that a decision creates.
type Planned struct {
	Scope, Key  string
	Fingerprint [32]byte
	Workflow    string
	Transition  string
	Instance    uuid.UUID
	Actor       string
	Flight      Flight
}

// Target is the new state of the command that an operation is about, if it has not changed since it was read.
type Target struct {
	transitions.CommandRef
	Attempt int                // as it was seen
	Was     transitions.Status // as it was seen
	Status  transitions.Status
	Code    int
	Body    []byte
	Version int64
	Flight  *Flight // nil: it is finished

	Workflow string // whose horizons count where it is finished
	Keep     Keep
}

// Decide computes the effect of a command on an instance (nil if it does not exist). It is pure and modifies no argument. A panic in the
// workflow's code becomes an Internal error of the command.
func Decide(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) (d Decision) {
	defer func() {
		if v := recover(); v != nil {
			d = failed(defect("panic in %s.%s: %v\n%s", p.Workflow, p.Transition, v, debug.Stack()))
		}
	}()
	switch {
	case p.Operation != nil:
		d = decideOperation(p, w, inst, now)
	case p.Resumed != nil && p.Resumed.Phase == transitions.Undoing:
		d = decideUndone(p, w, inst, now)
	case p.Resumed != nil && p.Resumed.Phase == transitions.Working:
		d = decideEnding(p, w, inst, now)
	case p.Resumed != nil:
		d = decideDue(p, w, inst, now)
	case p.NotBefore.After(now):
		d = schedule(p, inst)
	default:
		d = decideNow(p, w, inst, now)
	}
	d.setStanding(inst)
	return d
}

func decideNow(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	if p.Creates {
		return decideCreation(p, w, inst, now)
	}
	return decideTransition(p, w, inst, now)
}

// belongs refuses a missing instance, and one of another workflow or business key.
func belongs(p *Prepared, inst *transitions.Instance) *workflow.Error {
	if inst != nil && inst.Workflow == p.Workflow && (p.BusinessKey == "" || inst.BusinessKey == p.BusinessKey) {
		return nil
	}
	if p.BusinessKey != "" {
		return transitions.UnknownBusinessKey(p.Workflow, p.BusinessKey)
	}
	return workflow.Errorf(workflow.InstanceNotFound, "workflow %q has no instance %s", p.Workflow, p.Instance)
}

func decideCreation(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	step := p.Definition.Creating(p.Transition) // w may be older, and without it
	if err := authorize(step, p, nil); err != nil {
		return failed(err)
	}
	if inst != nil {
		switch {
		case inst.Workflow != p.Workflow || inst.BusinessKey != p.BusinessKey:
			return failed(&workflow.Error{Code: workflow.Internal, Message: "the instance's id belongs to another business key",
				Cause: fmt.Errorf("id %s: stored %s/%q, asked %s/%q", inst.ID, inst.Workflow, inst.BusinessKey, p.Workflow, p.BusinessKey)})
		case step.RefuseExisting:
			return refused(&workflow.Error{Code: workflow.AlreadyExists, State: inst.State,
				Message: fmt.Sprintf("the business key %q belongs to instance %s", inst.BusinessKey, inst.ID)})
		}
		return p.existing(inst)
	}
	if p.IfVersion != 0 {
		return refused(workflow.Errorf(workflow.VersionConflict, "expected version %d of an instance that does not exist yet", p.IfVersion))
	}
	fresh := &transitions.Instance{
		Tenant: p.Tenant, ID: p.Instance, Workflow: w.Name, Definition: w.Version,
		BusinessKey: p.BusinessKey, CreatedAt: p.asOf(now).Truncate(time.Microsecond), Links: transitions.Links{Parent: p.parent},
	}
	return run(p, w, []workflow.Move{{Step: step}}, fresh, p.Payload, now)
}

// existing is the decision of a command that finds the instance as requested.
func (p *Prepared) existing(inst *transitions.Instance) Decision {
	body := transitions.Result{Instance: inst.ID, Workflow: inst.Workflow, Transition: p.Transition, State: inst.State,
		Version: inst.Version, At: inst.UpdatedAt, Existing: true}
	return Decision{Stored: true, Status: transitions.Succeeded, Code: 200, Body: Answer(body)}
}

func decideTransition(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	if err := belongs(p, inst); err != nil {
		return failed(err)
	}
	if inst.Paused {
		return failed(workflow.Errorf(workflow.Paused, "the instance is paused; try again with the same key when it is resumed"))
	}
	if len(w.Named(p.Transition)) == 0 {
		return failed(workflow.Errorf(workflow.TransitionNotFound,
			"version %d of workflow %q, which this instance is on, has no transition %q", w.Version, w.Name, p.Transition))
	}
	steps := slices.DeleteFunc(w.AllLeaving(p.Transition, inst.State), p.isForbidden)
	if len(steps) == 0 {
		// An actor without the right learns nothing about the state.
		if err := authorizeAny(w.Moving(p.Transition), p, inst); err != nil {
			return failed(err)
		}
		return refused(illegal(w, inst, p.Transition))
	}
	var forbidden *workflow.Error // of a step that the actor may not execute
	steps = slices.DeleteFunc(steps, func(s *workflow.Step) bool {
		err := authorize(s, p, inst)
		forbidden = cmp.Or(err, forbidden)
		return err != nil
	})
	if len(steps) == 0 {
		return failed(forbidden)
	}
	if !p.expects(inst) {
		return refused(p.conflict(inst))
	}
	payload := p.Payload
	if w != p.Definition {
		var err error
		if payload, err = steps[0].Decode(p.Canonical); err != nil {
			return failed(workflow.AsError(err))
		}
	}
	moves, err := p.choose(w, inst, steps, factsOf(p, inst, now))
	if err != nil {
		return unwilling(err, inst)
	}
	return run(p, w, moves, inst, payload, now)
}

// isForbidden reports whether a step is not for the sender of the command: it is automatic, or internal and the sender is a caller.
func (p *Prepared) isForbidden(s *workflow.Step) bool {
	return s.Auto || s.Internal && transitions.ReservedPrefix(p.Scope) == ""
}

// expects reports whether the instance has the version that the command expects, if any.
func (p *Prepared) expects(inst *transitions.Instance) bool {
	return p.IfVersion == 0 || p.IfVersion == inst.Version
}

func (p *Prepared) conflict(inst *transitions.Instance) *workflow.Error {
	return &workflow.Error{Code: workflow.VersionConflict, State: inst.State,
		Message: fmt.Sprintf("expected version %d, but the instance is at version %d", p.IfVersion, inst.Version)}
}

// run decides the steps of a command; the first is the one that its key, its hook and its activity belong to.
func run(p *Prepared, w *workflow.Workflow, moves []workflow.Move, inst *transitions.Instance, payload workflow.Payload,
	now time.Time,
) Decision {
	step := moves[0].Step
	if err := p.importable(step, now); err != nil {
		return failed(err)
	}
	c := change{p: p, w: w, step: step, inst: inst, name: step.Name, payload: p.Canonical, now: now}
	var err error
	if c.out, err = step.Run(factsOf(p, inst, now), inst.Data, payload); err == nil {
		err = tooLarge(w, inst, c.out.Data)
	}
	for i := 1; i < len(moves) && err == nil; i++ {
		var out workflow.Outcome
		moves[i-1].To = c.out.To
		if out, err = moves[i].Step.Run(c.facts(inst.State), c.out.Data, payload); err == nil {
			err = c.add(out)
		}
		moves[i].To = c.out.To
	}
	if err == nil {
		err = c.macrostep(moves...)
	}
	if err != nil {
		return unwilling(err, inst)
	}
	if step.Work != nil && w.UndoneByOthers(step.Name) {
		if full := full(&inst.Links); full != nil {
			return unwilling(full, inst)
		}
	}
	if step.Work != nil {
		c.name += accepted
	}
	d := c.decide()
	switch {
	case d.After == nil:
		return d
	case step.Work != nil:
		d.After.Links.InFlight = &transitions.CommandRef{Transition: step.Name, Scope: p.Scope, Key: p.Key}
		d.Status, d.Code = transitions.Pending, 202
		request := Request{Payload: p.Canonical, Proof: p.Proof, Reason: p.Reason, Replay: int64(p.Replay), Tombstone: int64(p.Tombstone),
			Trace: p.Trace}
		if step.Work.KeepsFrom {
			request.From = moves[0].From
		}
		d.Flight = &Flight{Phase: transitions.Working, RunAt: now, Request: request.encode(), Definition: w.Version}
		return d
	case p.Creates:
		d.Code = 201
	}
	c.answer(&d)
	return d
}

// tooLarge refuses data that exceeds the workflow's limit and the size of the data before.
func tooLarge(w *workflow.Workflow, inst *transitions.Instance, data []byte) error {
	if len(data) <= max(w.MaxData, len(inst.Data)) {
		return nil
	}
	return workflow.Errorf(workflow.DataTooLarge, "the instance's data would have %d bytes; workflow %q allows %d",
		len(data), w.Name, w.MaxData)
}

func factsOf(p *Prepared, inst *transitions.Instance, now time.Time) workflow.Facts {
	return workflow.Facts{Now: p.asOf(now), Tenant: p.Tenant, Actor: p.Actor, Instance: inst.ID, Version: inst.Version, State: inst.State,
		From: p.from, Reason: p.Reason}
}

// unwilling returns the decision for an error of the workflow's code.
func unwilling(err error, inst *transitions.Instance) Decision {
	e := *workflow.AsError(err) // a copy: the workflow may return one value many times
	if !e.Code.Info().Final {
		return failed(&e)
	}
	e.State = inst.State
	return refused(&e)
}

// refused returns the decision of a refusal, which is stored and replayed.
func refused(e *workflow.Error) Decision {
	d := Decision{Stored: true}
	d.refuse(e)
	return d
}

// refuse makes an error the stored answer of the command.
func (d *Decision) refuse(e *workflow.Error) {
	problem := transitions.ProblemOf(e).Kept()
	d.Err, d.Status, d.Code, d.Body = e, transitions.FailedFinal, problem.Status, problem.JSON()
}

// Refuse returns the decision of a Hook that refuses an accepted command.
func Refuse(e *workflow.Error) Decision { return refused(e) }

// failed returns a decision that is not stored: the same key may be retried.
func failed(e *workflow.Error) Decision { return Decision{Err: e, Code: e.Code.Info().Status} }

func illegal(w *workflow.Workflow, inst *transitions.Instance, transition string) *workflow.Error {
	allowed := w.Allowed(inst.State)
	can := "nothing can be done any more"
	switch flight := inst.Links.InFlight; {
	case len(allowed) > 0:
		can = "allowed are: " + strings.Join(allowed, ", ")
	case flight != nil:
		can = fmt.Sprintf("nothing can be done as long as %q is in flight", flight.Transition)
	case inst.Open:
		can = "nothing can be done in it by a command"
	}
	return &workflow.Error{Code: workflow.IllegalTransition, State: inst.State, Allowed: allowed,
		Message: fmt.Sprintf("%q is not possible in state %q; %s", transition, inst.State, can)}
}

// authorize checks roles and separation of duties. inst is nil for a creation.
func authorize(step *workflow.Step, p *Prepared, inst *transitions.Instance) *workflow.Error {
	if !transitions.HasRole(p.Roles, step.Roles...) {
		return workflow.Errorf(workflow.RoleRequired, "%q requires role %s", step.Name, strings.Join(step.Roles, " or "))
	}
	if inst == nil {
		return nil
	}
	for _, other := range step.NotBy {
		if slices.Contains(inst.Actors[step.ActorsKey(other)], p.Actor) || slices.Contains(inst.Actors[other+accepted], p.Actor) {
			return workflow.Errorf(workflow.SeparationOfDuties, "%q and %q must be done by different actors", step.Name, other)
		}
	}
	for _, other := range step.NotByLast {
		before := inst.Actors[step.ActorsKey(other)]
		if last := len(before) > 0 && before[len(before)-1] == p.Actor; last || slices.Contains(inst.Actors[other+accepted], p.Actor) {
			return workflow.Errorf(workflow.SeparationOfDuties, "%q and the last %q must be done by different actors", step.Name, other)
		}
	}
	return nil
}

// authorizeAny accepts an actor who may execute at least one of the steps.
func authorizeAny(steps []*workflow.Step, p *Prepared, inst *transitions.Instance) *workflow.Error {
	var last *workflow.Error
	for _, s := range steps {
		if last = authorize(s, p, inst); last == nil {
			return nil
		}
	}
	return last
}

// Answer renders a result without the position, which the database assigns while it writes the row; see WithPosition. The SQL function
// answer does the same.
func Answer(r transitions.Result) []byte {
	b := make([]byte, 0, 256)
	b = append(b, `{"instance":"`...)
	b = append(b, r.Instance.String()...)
	b = append(b, `","workflow":`...)
	b, _ = jsontext.AppendQuote(b, r.Workflow)
	b = append(b, `,"transition":`...)
	b, _ = jsontext.AppendQuote(b, r.Transition)
	b = append(b, `,"state":`...)
	b, _ = jsontext.AppendQuote(b, string(r.State))
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, r.Version, 10)
	b = append(b, `,"at":"`...)
	b = r.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if r.Existing {
		b = append(b, `,"existing":true`...)
	}
	if len(r.Result) > 0 {
		b = append(b, `,"result":`...)
		b = append(b, r.Result...)
	}
	if len(r.Overdue) > 0 {
		b = append(b, `,"overdue":`...)
		raw, err := json.Marshal(r.Overdue)
		if err != nil {
			panic("decide: a timer has nothing that JSON cannot say: " + err.Error())
		}
		b = append(b, raw...)
	}
	return append(b, '}')
}
