package transitions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Phase is what a command in flight waits for.
type Phase string

// The phases.
const (
	Scheduled Phase = "scheduled" // its time, to be decided then
	Working   Phase = "working"   // the outcome of its activity
	Undoing   Phase = "undoing"   // the outcome of an undo
	InSQL     Phase = "sql"       // whoever claimed it by the functions in SQL
)

// Ref names a command.
type Ref struct{ Tenant, Scope, Key string }

// Hash is what a command is called among nodes: the FNV-1a hash of its name, each
// part ended by a NUL, which none contains. Two commands can have one hash: it is
// for hints only.
func (r Ref) Hash() uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, part := range [...]string{r.Tenant, r.Scope, r.Key} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		h *= prime
	}
	return h
}

// Request is what a command in flight was asked, as it is stored until it is
// finished.
type Request struct {
	Payload     jsontext.Value `json:"payload,omitzero"`
	Roles       []string       `json:"roles,omitempty"`
	IfVersion   int64          `json:"if_version,omitzero"`
	BusinessKey string         `json:"business_key,omitempty"`
	Creates     bool           `json:"creates,omitzero"`

	// How long the key is good for, in nanoseconds, as the caller asked.
	Replay    int64 `json:"replay_ns,omitzero"`
	Tombstone int64 `json:"tombstone_ns,omitzero"`

	// Tried says that a person has it tried again, so that an attempt of before may
	// have had its effect, although none is counted any more.
	Tried bool `json:"tried,omitzero"`

	// Of an undo: the effect's key, and its result where that is known.
	Effect string         `json:"effect,omitempty"`
	Result jsontext.Value `json:"result,omitzero"`
}

func (r Request) encode() []byte {
	raw, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		panic("transitions: a request has nothing that JSON cannot say: " + err.Error())
	}
	return raw
}

// InFlight is a command in flight, as whoever holds its lease sees it.
type InFlight struct {
	Ref
	Fingerprint [32]byte
	Phase       Phase
	Workflow    string
	Transition  string
	Instance    uuid.UUID
	Actor       string
	Request     []byte    // see Request
	Attempt     int       // the fencing token
	Failures    int       // attempts that failed or were lost
	RunAt       time.Time // when it is due, or was before it was claimed; zero where nobody waited for it
	Paused      bool      // nothing new is begun on its instance, or in its workflow
	CancelledBy string    // who asked it to stop; "" nobody
	CreatedAt   time.Time

	// TakenFrom is whose lease ran out before this claim, so that it is not known
	// what the attempt before this one has done; "" where that is known.
	TakenFrom string
	Unsure    bool // it is not known what some attempt before this one has done, and nobody has seen to it

	// Of the instance, as it was when the lease was taken; 0 and nil where there is
	// none yet.
	Definition int
	Data       []byte
}

// FlightUpdate is a command in flight that a commit has begun, changed or ended.
type FlightUpdate struct {
	InFlight // Definition and Data only where Leased
	Status   Status
	Leased   bool      // a worker of this node was reserved, and holds the lease
	Since    time.Time // where Leased: by the node's own clock, before the message was sent that took the lease
	Unbegun  bool      // this node holds the lease, and nobody works on it: nobody heard of the commit in time
	Stop     bool      // whoever works on it should stop; only Ref is set
	Receipt  *Receipt  // the answer, where it has ended
}

// Asked decodes the request.
func (f *InFlight) Asked() (Request, error) {
	var r Request
	if err := json.Unmarshal(f.Request, &r); err != nil {
		return r, &workflow.Error{Code: workflow.Internal, Message: "the stored request cannot be read", Cause: err}
	}
	return r, nil
}

// EffectKey names the effect of the command's activity: the same on every
// attempt. Of an undo it is the key of what is undone.
func (f *InFlight) EffectKey() (string, error) {
	if f.Phase != Undoing {
		return EffectKey(f.Ref), nil
	}
	r, err := f.Asked()
	return r.Effect, err
}

// EffectKey names the effect of a command's activity: 40 hexadecimal digits of
// the SHA-256 over tenant, scope and key.
func EffectKey(r Ref) string {
	buf := make([]byte, 0, 256)
	for _, part := range []string{r.Tenant, r.Scope, r.Key} {
		buf = strconv.AppendInt(buf, int64(len(part)), 10)
		buf = append(buf, ':')
		buf = append(buf, part...)
	}
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:20])
}

// Outcome is what an attempt came to.
type Outcome struct {
	Result  []byte            // JSON, where it succeeded
	Failure *workflow.Failure // nil: it succeeded
}

// Resumed says that a command goes on that is in flight already. It holds for as
// long as the attempt is the newest and its lease is held.
type Resumed struct {
	Attempt int
	Phase   Phase
	Outcome *Outcome // of a Working or Undoing one
}

// Due makes a command ready to be decided whose time has come. Its versions are
// those of Prepare. What was asked was checked when it was scheduled.
func (f *InFlight) Due(newest *workflow.Workflow, older ...*workflow.Workflow) (*Prepared, error) {
	asked, err := f.Asked()
	if err != nil {
		return nil, err
	}
	c := Command{Tenant: f.Tenant, Scope: f.Scope, Key: f.Key, Workflow: f.Workflow, Transition: f.Transition,
		IfVersion: asked.IfVersion, Actor: f.Actor, Roles: asked.Roles,
		Replay: time.Duration(asked.Replay), Tombstone: time.Duration(asked.Tombstone)}
	if asked.Creates { // whatever a newer version makes of the name
		c.BusinessKey = asked.BusinessKey
	} else {
		c.Instance = f.Instance
	}
	p := &Prepared{Command: c, Canonical: asked.Payload, Fingerprint: f.Fingerprint,
		Resumed: &Resumed{Attempt: f.Attempt, Phase: Scheduled}}
	versions := append([]*workflow.Workflow{newest}, older...)
	if !asked.Creates {
		versions = slices.DeleteFunc(versions, func(w *workflow.Workflow) bool {
			steps := w.Named(f.Transition)
			return len(steps) > 0 && steps[0].Start
		})
	}
	if len(versions) == 0 {
		return nil, workflow.Errorf(workflow.TransitionNotFound, "workflow %q has no transition %q of an instance any more", f.Workflow, f.Transition)
	}
	if err := p.settle(versions[0], func() uuid.UUID { return f.Instance }, versions[1:]); err != nil {
		return nil, err
	}
	return p, nil
}

// Ending makes the outcome of an attempt ready to be decided.
func (f *InFlight) Ending(o Outcome) (*Prepared, error) {
	asked, err := f.Asked()
	if err != nil {
		return nil, err
	}
	return &Prepared{
		Command: Command{Tenant: f.Tenant, Scope: f.Scope, Key: f.Key, Workflow: f.Workflow, Transition: f.Transition,
			Instance: f.Instance, Actor: f.Actor, Replay: time.Duration(asked.Replay), Tombstone: time.Duration(asked.Tombstone)},
		Canonical: asked.Payload, Fingerprint: f.Fingerprint, effect: asked.Effect,
		Resumed: &Resumed{Attempt: f.Attempt, Phase: f.Phase, Outcome: &o},
	}, nil
}

// Begun is the record of a command that a decision puts in flight.
func (p *Prepared) Begun(d *Decision, now time.Time) *Record {
	return &Record{
		Scope: p.Scope, Key: p.Key, Fingerprint: p.Fingerprint, Status: d.Status, Workflow: p.Workflow, Transition: p.Transition,
		Instance: p.Instance, Version: d.Entry.Version, Actor: p.Actor, CreatedAt: now, UpdatedAt: now,
		Phase: d.Flight.Phase, RunAt: d.Flight.RunAt, Request: d.Flight.Request,
	}
}

// Links are what ties an instance to others, as part of its row.
type Links struct {
	// InFlight is the command that brought the instance into an in-between state,
	// and whose outcome takes it on.
	InFlight *CommandRef `json:"in_flight,omitempty"`
	// Effects are what a later failure undoes, in the order of their completion. With
	// MaxEffects of them, or once their payloads and results have MaxEffectBytes, no
	// other activity is begun whose effect would be one.
	Effects []Effect `json:"effects,omitempty"`
	Parent  *Parent  `json:"parent,omitempty"`
}

// CommandRef is a command of the instance.
type CommandRef struct {
	Transition string `json:"transition"`
	Scope      string `json:"scope"`
	Key        string `json:"key"`
}

// The bounds of Links.Effects.
const (
	MaxEffects     = 1000
	MaxEffectBytes = 1 << 20
)

// full refuses to begin what would be one more effect to remember.
func (l *Links) full() *workflow.Error {
	size := 0
	for i := range l.Effects {
		size += len(l.Effects[i].Payload) + len(l.Effects[i].Result)
	}
	if len(l.Effects) < MaxEffects && size < MaxEffectBytes {
		return nil
	}
	return workflow.Errorf(workflow.TooManyEffects, "the instance keeps %d effects of %d bytes together, which a later failure would undo; %d, or %d bytes, are the most",
		len(l.Effects), size, MaxEffects, MaxEffectBytes)
}

// Effect is an activity that was done and can be undone.
type Effect struct {
	CommandRef
	Payload jsontext.Value `json:"payload,omitzero"`
	Result  jsontext.Value `json:"result,omitzero"`
}

// Parent is who started a child, and what the child's end causes there.
type Parent struct {
	Workflow string    `json:"workflow"`
	Instance uuid.UUID `json:"instance"`
	End      string    `json:"end,omitempty"` // a transition of the parent
}

// The names that are Pawl's own begin with this: scopes of the commands that it
// makes, and their actors.
const Reserved = "pawl:"

// TimerScope is the scope of the command that a timer of an instance causes.
func TimerScope(instance uuid.UUID, timer string) string {
	return Reserved + "timer:" + instance.String() + ":" + timer
}

// UndoScope is the scope of the undos of an instance.
func UndoScope(instance uuid.UUID) string { return Reserved + "undo:" + instance.String() }

func childScope(parent uuid.UUID) string { return Reserved + "child:" + parent.String() }

func endScope(child uuid.UUID) string { return Reserved + "end:" + child.String() }

// checkReserved refuses names that only Pawl itself may use: those of its own
// commands, and of messages, whose keys are their senders'.
func (c Command) checkReserved() error {
	for _, prefix := range []string{Reserved, inboxScope} {
		if strings.HasPrefix(c.Scope, prefix) {
			return workflow.Errorf(workflow.ScopeInvalid, "scopes that begin with %q are Pawl's own", prefix)
		}
		if strings.HasPrefix(c.Actor, prefix) {
			return workflow.Errorf(workflow.InvalidRequest, "actors that begin with %q are Pawl's own", prefix)
		}
	}
	return nil
}

// childID is the id of an instance that a decision starts: the same whenever the
// decision is made again.
func childID(parent *Instance, ordinal int) uuid.UUID {
	return InstanceID(parent.Tenant, fmt.Sprintf("%s/%d", parent.ID, parent.Version), strconv.Itoa(ordinal))
}
