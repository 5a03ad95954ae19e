package decide

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Request is the stored request of a command in flight.
type Request struct {
	Payload jsontext.Value `json:"payload,omitzero"`
	Roles   []string       `json:"roles,omitempty"`
	Proof   string         `json:"proof,omitempty"`
	Reason  string         `json:"reason,omitempty"` // the caller's

	Credential transitions.Credential `json:"credential,omitzero"`

	IfVersion   int64  `json:"if_version,omitzero"`
	BusinessKey string `json:"business_key,omitempty"`
	Creates     bool   `json:"creates,omitzero"`

	// How long the key is good for, in nanoseconds, as the caller asked.
	Replay    int64 `json:"replay_ns,omitzero"`
	Tombstone int64 `json:"tombstone_ns,omitzero"`

	// Tried records that an attempt before an operator's retry may have had its effect.
	Tried bool `json:"tried,omitzero"`

	// Checks counts the failed checks.
	Checks int `json:"checks,omitzero"`

	// Trace is the trace context of the request, if sampled.
	Trace tracing.Context `json:"trace,omitempty"`

	// Outcome is an outcome that a node could not store, for another node to store without an attempt.
	Outcome *Outcome `json:"outcome,omitempty"`

	// From is the state in which an activity was accepted, if relevant.
	From workflow.State `json:"from,omitempty"`

	// Of an undo: the effect's key, its result if known, and the actor who counts as having done it if it cannot be undone ("" if counted
	// in any case).
	Effect string         `json:"effect,omitempty"`
	Result jsontext.Value `json:"result,omitzero"`
	By     string         `json:"by,omitempty"`
}

func (r Request) encode() []byte {
	raw, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		panic("decide: a request has nothing that JSON cannot say: " + err.Error())
	}
	return raw
}

// InFlight is a command in flight, as seen by the holder of its lease.
type InFlight struct {
	transitions.Ref
	Fingerprint [32]byte
	Phase       transitions.Phase
	Workflow    string
	Transition  string
	Instance    uuid.UUID
	Actor       string
	Request     []byte    // see Request
	Attempt     int       // the fencing token
	Failures    int       // attempts of the work that failed or were lost; failed checks are not among them
	RunAt       time.Time // when it is due, or was before it was claimed; zero if it did not wait
	Paused      bool      // nothing new is begun on its instance, or in its workflow
	CancelledBy string    // who asked it to stop; "" nobody
	CreatedAt   time.Time

	// TakenFrom is the node whose lease expired before this claim, so that the effect of its attempt is unknown; "" if none did.
	TakenFrom string
	Unsure    bool // the effect of an earlier attempt is unknown, and no operator has resolved it
	Nothing   bool // every attempt so far that has failed has certainly done nothing

	// Of the instance, at the time of the lease; 0 and nil if it does not exist yet.
	Definition int
	Data       []byte
}

// FlightUpdate is a command in flight that a commit has begun, changed or ended.
type FlightUpdate struct {
	InFlight  // Definition and Data only where Leased
	Status    transitions.Status
	Leased    bool                 // a worker of this node was reserved, and holds the lease
	Since     time.Time            // where Leased: by the node's own clock, before the message was sent that took the lease
	Ambiguous bool                 // this node may hold the lease: the outcome of the commit is unknown, and the attempt has not begun
	Stop      bool                 // whoever works on it should stop; only Ref is set
	Receipt   *transitions.Receipt // the answer, where it has ended
}

// Asked decodes the request.
func (f *InFlight) Asked() (Request, error) {
	var r Request
	if err := json.Unmarshal(f.Request, &r); err != nil {
		return r, &workflow.Error{Code: workflow.Internal, Message: "the stored request cannot be read", Cause: err}
	}
	return r, nil
}

// EffectKey returns the key of the activity's effect, the same on every attempt and for its undo.
func (f *InFlight) EffectKey() (string, error) {
	if f.Phase != transitions.Undoing {
		return transitions.EffectKey(f.Ref), nil
	}
	r, err := f.Asked()
	return r.Effect, err
}

// Activity returns the command's step in a version, or nil.
func (f *InFlight) Activity(w *workflow.Workflow) *workflow.Step {
	if only := w.Activity(f.Transition, ""); only != nil {
		return only
	}
	asked, err := f.Asked()
	if err != nil {
		return nil
	}
	return w.Activity(f.Transition, asked.From)
}

// Outcome is the result of an attempt.
type Outcome struct {
	Result  jsontext.Value    `json:"result,omitzero"`   // where it succeeded
	Failure *workflow.Failure `json:"failure,omitempty"` // nil: it succeeded
}

// Resumed identifies the attempt with which a command in flight continues, valid while it is the newest and holds its lease.
type Resumed struct {
	Attempt int
	Tried   int // attempts of the work, the one that has ended among them
	Phase   transitions.Phase
	Outcome *Outcome // of a Working or Undoing one
}

// Due prepares a scheduled command that is due. The versions are those of Resolve. The request was validated when it was scheduled.
func (f *InFlight) Due(newest *workflow.Workflow, older ...*workflow.Workflow) (*Prepared, error) {
	asked, err := f.Asked()
	if err != nil {
		return nil, err
	}
	c := transitions.Command{Tenant: f.Tenant, Key: f.Key, Workflow: f.Workflow, Transition: f.Transition, Actor: f.Actor, Roles: asked.Roles,
		Reason: asked.Reason, Options: transitions.Options{Scope: f.Scope, IfVersion: asked.IfVersion, Proof: asked.Proof,
			Credential: asked.Credential, Replay: time.Duration(asked.Replay), Tombstone: time.Duration(asked.Tombstone), Trace: asked.Trace}}
	if asked.Creates { // whatever a newer version makes of the name
		c.BusinessKey = asked.BusinessKey
	} else {
		c.Instance = f.Instance
	}
	p := &Prepared{Command: c, Canonical: asked.Payload, Creates: asked.Creates,
		Resumed: &Resumed{Attempt: f.Attempt, Phase: transitions.Scheduled}}
	versions := append([]*workflow.Workflow{newest}, older...)
	if !asked.Creates {
		versions = slices.DeleteFunc(versions, func(w *workflow.Workflow) bool {
			return w.Creating(f.Transition) != nil && len(w.Moving(f.Transition)) == 0
		})
	}
	if len(versions) == 0 {
		return nil, workflow.Errorf(workflow.TransitionNotFound,
			"workflow %q has no transition %q of an instance any more", f.Workflow, f.Transition)
	}
	if err := p.Resolve(func() uuid.UUID { return f.Instance }, versions[0], versions[1:]...); err != nil {
		return nil, err
	}
	p.Fingerprint = f.Fingerprint
	return p, nil
}

// Ending prepares the outcome of an attempt.
func (f *InFlight) Ending(o Outcome) (*Prepared, error) {
	asked, err := f.Asked()
	if err != nil {
		return nil, err
	}
	if f.Phase == transitions.Working {
		asked.By = f.Actor
	}
	return &Prepared{
		Command: transitions.Command{Tenant: f.Tenant, Key: f.Key, Workflow: f.Workflow, Transition: f.Transition,
			Instance: f.Instance, Actor: f.Actor, Reason: asked.Reason, Options: transitions.Options{Scope: f.Scope, Proof: asked.Proof,
				Replay: time.Duration(asked.Replay), Tombstone: time.Duration(asked.Tombstone), Trace: asked.Trace}},
		Canonical: asked.Payload, Fingerprint: f.Fingerprint, effect: asked.Effect, from: asked.From, by: asked.By,
		Resumed: &Resumed{Attempt: f.Attempt, Tried: f.Failures + 1, Phase: f.Phase, Outcome: &o},
	}, nil
}

// Limits of Links.Effects.
const (
	MaxEffects     = 1000
	MaxEffectBytes = 1 << 20
)

// full refuses another undoable effect.
func full(l *transitions.Links) *workflow.Error {
	size := 0
	for i := range l.Effects {
		size += len(l.Effects[i].Payload) + len(l.Effects[i].Result)
	}
	if len(l.Effects) < MaxEffects && size < MaxEffectBytes {
		return nil
	}
	return workflow.Errorf(workflow.TooManyEffects,
		"the instance keeps %d effects of %d bytes together, which a later failure would undo; %d, or %d bytes, are the most",
		len(l.Effects), size, MaxEffects, MaxEffectBytes)
}

// TimerScope returns the scope of the command of a timer.
func TimerScope(instance uuid.UUID, timer string) string {
	return transitions.Reserved + "timer:" + instance.String() + ":" + timer
}

// UndoScope returns the scope of the undos of an instance.
func UndoScope(instance uuid.UUID) string { return transitions.Reserved + "undo:" + instance.String() }

func endScope(child uuid.UUID) string { return endPrefix + child.String() }

// FlightOf returns the record as its next attempt would see it.
func FlightOf(r *transitions.Record, tenant string) *InFlight {
	return &InFlight{Ref: transitions.Ref{Tenant: tenant, Scope: r.Scope, Key: r.Key}, Fingerprint: r.Fingerprint, Phase: r.Phase,
		Workflow: r.Workflow, Transition: r.Transition, Instance: r.Instance, Actor: r.Actor, Request: r.Request, Attempt: r.Attempt,
		Failures: r.Failures, RunAt: r.RunAt, CancelledBy: r.CancelledBy, CreatedAt: r.CreatedAt}
}

// Row is the row of a new command, or the update of an existing one. In flight (Phase) it has no answer.
type Row struct {
	transitions.Record
	Keep       Keep
	Definition int // of the instance, in flight, where it is known

	// Of an existing row, as it was read:
	Seen int
	Was  transitions.Status
}

// HorizonsOf returns the retention periods of a workflow, resolved.
type HorizonsOf func(workflowName string) workflow.Horizons

// RowOf returns the row of a command whose decision is stored.
func RowOf(p *Prepared, d *Decision, horizons HorizonsOf, now time.Time) Row {
	r := Row{Keep: Keep{Replay: p.Replay, Tombstone: p.Tombstone, Answer: d.Answer}, Record: transitions.Record{
		Scope: p.Scope, Key: p.Key, Fingerprint: p.Fingerprint, Status: d.Status, Workflow: p.Workflow, Transition: p.Transition,
		Instance: p.Instance, Version: d.Entry.Version, Actor: p.Actor, CreatedAt: now}}
	if p.Resumed != nil {
		r.Seen, r.Was, r.Attempt = p.Resumed.Attempt, transitions.Processing, p.Resumed.Attempt
	}
	r.put(d.Flight, d.Code, d.Body, horizons, now)
	return r
}

// Begun returns the record of a command that a decision puts in flight.
func (p *Prepared) Begun(d *Decision, now time.Time) *transitions.Record {
	r := RowOf(p, d, nil, now)
	return &r.Record
}

// Row returns the update of the operation's target.
func (t *Target) Row(horizons HorizonsOf, now time.Time) Row {
	r := Row{Seen: t.Attempt, Was: t.Was, Keep: t.Keep, Record: transitions.Record{Scope: t.Scope, Key: t.Key, Workflow: t.Workflow,
		Status: t.Status, Version: t.Version, Attempt: t.Attempt}}
	r.put(t.Flight, t.Code, t.Body, horizons, now)
	return r
}

// Row returns the row of a new command.
func (p *Planned) Row(now time.Time) Row {
	r := Row{Record: transitions.Record{Scope: p.Scope, Key: p.Key, Fingerprint: p.Fingerprint, Status: transitions.Pending,
		Workflow: p.Workflow, Transition: p.Transition, Instance: p.Instance, Actor: p.Actor, CreatedAt: now}}
	r.put(&p.Flight, 0, nil, nil, now)
	return r
}

// put sets the flight or the answer.
func (r *Row) put(f *Flight, code int, body []byte, horizons HorizonsOf, now time.Time) {
	r.UpdatedAt = now
	if f != nil {
		r.Phase, r.RunAt, r.Request, r.Definition = f.Phase, f.RunAt, f.Request, f.Definition
		return
	}
	r.Code, r.Body, r.FinishedAt, r.ExpiresAt = code, body, now, r.Keep.Until(horizons(r.Workflow), now)
}

// schedule schedules a command. It only checks that the instance exists.
func schedule(p *Prepared, inst *transitions.Instance) Decision {
	if !p.Creates {
		if err := belongs(p, inst); err != nil {
			return failed(err)
		}
	}
	definition := 0
	if inst != nil && !p.Creates {
		definition = inst.Definition
	}
	return Decision{Stored: true, Status: transitions.Pending, Code: 202, Flight: &Flight{
		Phase: transitions.Scheduled, RunAt: p.NotBefore, Definition: definition,
		Request: Request{Payload: p.Canonical, Roles: p.Roles, Proof: p.Proof, Credential: p.Credential, Reason: p.Reason, IfVersion: p.IfVersion,
			BusinessKey: p.BusinessKey, Creates: p.Creates, Replay: int64(p.Replay), Tombstone: int64(p.Tombstone), Trace: p.Trace}.encode()}}
}

// decideDue decides a scheduled command that is due, cancelled or abandoned. Without a caller to correct it, an error that a retry does not
// remove becomes its answer.
func decideDue(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	if o := p.Resumed.Outcome; o != nil {
		stopped := workflow.Errorf(codeOf(o.Failure.Kind), "%s", o.Failure.Message)
		if p.isCompletion() && belongs(p, inst) == nil {
			return recordCompletion(p, w, inst, stopped, now)
		}
		return refused(stopped)
	}
	d := decideNow(p, w, inst, now)
	if p.isCompletion() {
		return complete(p, w, inst, d, now)
	}
	if d.Err != nil && !d.Stored && !d.Err.Code.Info().Retry {
		d = refused(d.Err)
	}
	return d
}

// An import is a transition that has happened before. The workflow's code and timers see the time when it happened, and an instance that it
// creates was created then. Its row and position in the log are of now.

// asOf returns the time that the workflow's code sees.
func (p *Prepared) asOf(now time.Time) time.Time {
	if p.HappenedAt.IsZero() {
		return now
	}
	return p.HappenedAt
}

// importable refuses imports of future transitions and of activities, whose effect would be repeated.
func (p *Prepared) importable(step *workflow.Step, now time.Time) *workflow.Error {
	switch {
	case p.HappenedAt.IsZero():
	case p.HappenedAt.After(now):
		return invalid("the command has happened at %s, which is later than now",
			p.HappenedAt.Format(time.RFC3339))
	case step.Work != nil:
		return invalid("%q does something outside, which would happen once more; import what has come of it by a transition that does not",
			step.Name)
	}
	return nil
}

// importGrace delays overdue timers armed by an import, so that the rest of the history can be imported.
const importGrace = time.Hour

// fires returns when a timer fires. It reports overdue timers in the answer of an import, a migration or a correction.
func (c *change) fires(d *Decision, t *workflow.Timer, due time.Time) time.Time {
	earliest := c.now
	if !c.p.HappenedAt.IsZero() {
		earliest = c.now.Add(importGrace)
	}
	told := earliest.After(c.now) || c.plan != nil || c.name == correctedEntry
	if told && due.Before(c.now) {
		d.Overdue = append(d.Overdue, transitions.OverdueTimer{Timer: t.Name, Transition: t.Do, Due: due.UTC().Truncate(time.Microsecond),
			Fires: earliest.UTC()})
	}
	if due.Before(earliest) {
		return earliest
	}
	return due
}
