package decide

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Operate prepares an operation on an instance. The scope defaults to "ops:" and the instance. plans are the known plans to the target
// version of a migration.
//
// Errors: the codes of malformed requests.
func Operate(c transitions.Command, o transitions.Operation, plans ...*workflow.Migration) (*Prepared, error) {
	p := &Prepared{Command: c.WithDefaults(), Operation: &o, plans: plans}
	if err := p.checkReserved(); err != nil {
		return nil, err
	}
	return p.operate()
}

// MigrationScope returns the scope of the commands of a batch migration. Their keys are the instances.
func MigrationScope(batch int64) string {
	return transitions.Reserved + "migration:" + strconv.FormatInt(batch, 10)
}

// MigrateOne is Operate for an instance of a batch migration. Its key is kept for at least 30 days, because a batch may wait for longer
// than the workflow keeps its keys, and retries instances without a key.
func MigrateOne(c transitions.Command, o transitions.Operation, batch int64, plan *workflow.Migration) (*Prepared, error) {
	c.Scope, c.Key = MigrationScope(batch), c.Instance.String()
	rememberLong(&c, plan.To)
	p := &Prepared{Command: c.WithDefaults(), Operation: &o, plans: []*workflow.Migration{plan}}
	return p.operate()
}

func (p *Prepared) operate() (*Prepared, error) {
	o := p.Operation
	if err := p.checkOperation(); err != nil {
		return nil, err
	}
	p.Transition = string(o.Action)
	if o.Result != nil {
		if !o.Result.IsValid() {
			return nil, badPayload("", "the result is not valid JSON")
		}
		object, err := Canonical(member("v", o.Result)) // any value, so within an object
		if err != nil {
			return nil, err
		}
		o.Result = jsontext.Value(object[len(`{"v":`) : len(object)-1])
	}
	payload, err := json.Marshal(struct {
		Scope  string         `json:"scope,omitempty"`
		Key    string         `json:"key,omitempty"`
		Reason string         `json:"reason,omitempty"`
		Result jsontext.Value `json:"result,omitzero"`
		To     int            `json:"to,omitzero"`
		State  workflow.State `json:"state,omitempty"`
		Data   jsontext.Value `json:"data,omitzero"`
	}{o.Target.Scope, o.Target.Key, o.Reason, o.Result, o.To, o.State, o.Data}, json.Deterministic(true))
	if err != nil {
		return nil, invalid("the operation cannot be encoded")
	}
	p.Command.Payload = payload
	if p.Scope == "" {
		if p.Scope = "ops"; p.Instance != uuid.Nil {
			p.Scope += ":" + p.Instance.String()
		}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.Fingerprint = p.fingerprint()
	return p, nil
}

// checkOperation refuses an operation that cannot be stored or has no meaning.
func (p *Prepared) checkOperation() error {
	o := p.Operation
	if problem := transitions.TextProblem(o.Reason, transitions.MaxReason); problem != "" {
		return invalid("the reason %s", problem)
	}
	var onInstance, onCommand bool
	switch o.Action {
	case transitions.Pause, transitions.Resume, transitions.Migrate, transitions.Correct:
		onInstance = true
	case transitions.Retry, transitions.Resolve, transitions.Abandon:
		onCommand = true
	}
	corrects := o.State != "" || o.Data != nil
	switch {
	case !onInstance && !onCommand:
		return invalid("unknown operation %q", o.Action)
	case onInstance && o.Target != (transitions.CommandRef{}):
		return invalid("%q is about an instance, not a command", o.Action)
	case onCommand && (o.Target.Scope == "" || o.Target.Key == ""):
		return invalid("%q needs the scope and the key of a command", o.Action)
	case (o.To > 0) != (o.Action == transitions.Migrate) || o.To < 0:
		return invalid("%q takes a version, from 1 on, and nothing else does", transitions.Migrate)
	case corrects != (o.Action == transitions.Correct):
		return invalid("%q takes a state or data, and nothing else does", transitions.Correct)
	case corrects && o.Reason == "":
		return invalid("a correction needs a reason")
	case o.Data != nil && (o.Data.Kind() != '{' || !o.Data.IsValid()):
		return badPayload("/data", "is not an object in JSON")
	case o.Result != nil && o.Action != transitions.Resolve:
		return invalid("only %q takes a result", transitions.Resolve)
	case p.Reason != "":
		return invalid("the reason of an operation is the operation's, not the command's")
	case !p.NotBefore.IsZero():
		return invalid("an operation is decided at once, and cannot be for later")
	case !p.HappenedAt.IsZero():
		return invalid("an operation happens now, and cannot have happened before")
	case p.IfVersion != 0 && onCommand:
		return invalid("%q is about a command, and cannot expect a version of the instance", o.Action)
	}
	return nil
}

func decideOperation(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	o := p.Operation
	if o.Target.Scope == "" {
		switch {
		case inst == nil:
			return failed(workflow.Errorf(workflow.InstanceNotFound, "there is no instance %s", p.Instance))
		case !p.expects(inst):
			return refused(p.conflict(inst))
		case o.Action == transitions.Migrate:
			return migrate(p, inst, now)
		case o.Action == transitions.Correct:
			return correct(p, w, inst, now)
		}
		name, paused := PausedEntry, o.Action == transitions.Pause // repeating it is not an error
		if !paused {
			name = resumedEntry
		}
		d := p.note(w, inst, name, now)
		if d.After != nil {
			d.After.Paused, d.Resumed = paused, !paused
		}
		return d
	}
	if p.Stuck == nil || p.Stuck.Instance != p.Instance {
		return failed(transitions.UnknownCommand())
	}
	if verdict := Classify(p.Stuck, p.Stuck.Fingerprint, now); verdict == KeyGone {
		_, err := verdict.Answer(p.Stuck)
		return failed(workflow.AsError(err))
	}
	if p.Stuck.Stuck == "" {
		return refused(workflow.Errorf(workflow.NotStuck, "the command does not wait for an operator; its status is %s", p.Stuck.Status))
	}
	if o.Action == transitions.Retry {
		return retry(p, w, inst, now)
	}
	return settle(p, w, inst, now)
}

// note adds an audit row to the instance, if it exists: that of a scheduled creation does not.
func (p *Prepared) note(w *workflow.Workflow, inst *transitions.Instance, name string, now time.Time) Decision {
	if inst == nil {
		return Decision{Stored: true}
	}
	c := change{p: p, w: w, inst: inst, name: name, payload: p.Canonical, now: now, out: unchanged(inst, p.Operation.Reason)}
	return c.decideAndAnswer()
}

// retry makes a stuck command due with all its attempts. Tried records that an earlier one may have had its effect.
func retry(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	stuck := p.Stuck
	d := p.note(w, inst, stuck.Transition+".retried", now)
	if !d.Stored {
		return d
	}
	d.Target = p.target()
	d.Target.Status, d.Target.Version = transitions.Pending, stuck.Version
	d.Target.Flight = &Flight{Phase: stuck.Phase, RunAt: now, Request: stuck.Request}
	if asked, err := FlightOf(stuck, p.Tenant).Asked(); err == nil && stuck.Phase != transitions.Scheduled {
		asked.Tried = stuck.Phase == transitions.Working
		asked.Outcome = nil // retry even if another node has handed over an outcome
		asked.Checks = 0
		d.Target.Flight.Request = asked.encode()
	}
	return p.done(d, now)
}

// settle completes a stuck command as an operator requests.
func settle(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	o := p.Operation
	stuck := p.Stuck
	failure := &workflow.Failure{Kind: workflow.FailureAbandoned, Message: "given up by " + p.Actor, Attempts: stuck.Failures, Unknown: true}
	if o.Reason != "" {
		failure.Message += ": " + o.Reason
	}
	if stuck.Phase == transitions.Scheduled {
		return dropScheduled(p, w, inst, failure.Message, now)
	}
	flight := FlightOf(stuck, p.Tenant)
	flight.Actor = p.Actor
	outcome := Outcome{Failure: failure}
	if o.Action == transitions.Resolve {
		outcome = Outcome{Result: o.Result}
		if err := checkResult(stuck, w, o.Result); err != nil {
			return failed(err)
		}
	}
	ending, err := flight.Ending(outcome)
	if err != nil {
		return failed(workflow.AsError(err))
	}
	ending.Proof = p.Proof
	ending.settled, ending.because = true, o.Reason
	ending.Reason = ""
	if stuck.Phase == transitions.Working {
		ending.by = stuck.Actor
	}
	d := Decide(ending, w, inst, now)
	if !d.Stored {
		return d
	}
	d.Target = p.target()
	d.Target.Status, d.Target.Code, d.Target.Body, d.Target.Version = d.Status, d.Code, d.Body, d.Entry.Version
	d.Target.Keep.Answer, d.Answer = d.Answer, 0
	return p.done(d, now)
}

// dropScheduled abandons a scheduled command that cannot be decided.
func dropScheduled(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, why string, now time.Time) Decision {
	stuck := p.Stuck
	if p.Operation.Action == transitions.Resolve {
		return failed(invalid("a scheduled command has no result; retry or abandon it"))
	}
	d := p.note(w, inst, stuck.Transition+".abandoned", now)
	if !d.Stored {
		return d
	}
	end := refused(workflow.Errorf(workflow.CommandCancelled, "%s", why))
	d.Target = p.target()
	d.Target.Status, d.Target.Code, d.Target.Body, d.Target.Version = end.Status, end.Code, end.Body, stuck.Version
	return p.done(d, now)
}

// done sets the answer of an operation on a command.
func (p *Prepared) done(d Decision, now time.Time) Decision {
	d.Err, d.Status, d.Code, d.Body, d.Plain = nil, transitions.Succeeded, 200, p.answer(now), false
	return d
}

// checkResult refuses a result that the activity could not have returned.
func checkResult(stuck *transitions.Record, w *workflow.Workflow, result []byte) *workflow.Error {
	if stuck.Phase != transitions.Working {
		return nil
	}
	if result == nil {
		return &workflow.Error{Code: workflow.InvalidPayload, Message: "to resolve a command, say with what result",
			Fields: []workflow.FieldError{{Pointer: "/result", Message: "is missing"}}}
	}
	asked, failure := FlightOf(stuck, "").Asked()
	if failure != nil {
		return workflow.AsError(failure)
	}
	step, err := activityOf(&Prepared{Command: transitions.Command{Transition: stuck.Transition}, from: asked.From}, w)
	if err != nil {
		return err
	}
	if err := step.Work.Fits(result); err != nil {
		return workflow.AsError(err)
	}
	return nil
}

// target returns the stuck command, with the fields that must not have changed since it was read.
func (p *Prepared) target() *Target {
	stuck := p.Stuck
	t := &Target{CommandRef: transitions.CommandRef{Transition: stuck.Transition, Scope: stuck.Scope, Key: stuck.Key},
		Attempt: stuck.Attempt, Was: stuck.Status, Workflow: stuck.Workflow}
	if asked, err := FlightOf(stuck, p.Tenant).Asked(); err == nil {
		t.Keep = Keep{Replay: time.Duration(asked.Replay), Tombstone: time.Duration(asked.Tombstone)}
	}
	return t
}

// answer returns the answer of an operation on a command.
func (p *Prepared) answer(now time.Time) []byte {
	o := p.Operation
	raw, err := json.Marshal(struct {
		Operation transitions.Action `json:"operation"`
		Scope     string             `json:"scope"`
		Key       string             `json:"key"`
		At        time.Time          `json:"at"`
	}{o.Action, o.Target.Scope, o.Target.Key, now})
	if err != nil {
		panic(fmt.Sprintf("decide: an operation's answer has nothing that JSON cannot say: %v", err))
	}
	return raw
}
