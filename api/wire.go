package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Instance is an instance as callers see it.
type Instance struct {
	ID          uuid.UUID         `json:"id"`
	Workflow    string            `json:"workflow"`
	Definition  int               `json:"definition"` // the version of the workflow that it began with
	BusinessKey string            `json:"business_key,omitempty"`
	State       workflow.State    `json:"state"`
	Open        bool              `json:"open"` // not in a final state
	Paused      bool              `json:"paused,omitzero"`
	InFlight    *CommandRef       `json:"in_flight,omitempty"` // the command whose outcome takes it on
	Version     int64             `json:"version"`
	Data        jsontext.Value    `json:"data"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
}

func instanceOf(i *transitions.Instance) Instance {
	return Instance{
		ID: i.ID, Workflow: i.Workflow, Definition: i.Definition, BusinessKey: i.BusinessKey, State: i.State,
		Open: i.Open, Paused: i.Paused, InFlight: refOf(i.Links.InFlight), Version: i.Version, Data: raw(i.Data), Attributes: i.Attributes,
		CreatedAt: i.CreatedAt.UTC(), UpdatedAt: i.UpdatedAt.UTC(),
	}
}

// PastInstance is an instance as it was after one of its transitions. What its
// audit rows do not tell is not in it.
type PastInstance struct {
	ID          uuid.UUID      `json:"id"`
	Workflow    string         `json:"workflow"`
	Definition  int            `json:"definition"`
	BusinessKey string         `json:"business_key,omitempty"`
	State       workflow.State `json:"state"`
	Open        bool           `json:"open"`
	Version     int64          `json:"version"`
	Newest      int64          `json:"newest_version"`  // the version that it has now
	Data        jsontext.Value `json:"data,omitempty"`  // absent when it was erased
	Erased      bool           `json:"erased,omitzero"` // the data of then is gone for good
	CreatedAt   time.Time      `json:"created_at"`
	UpdatedAt   time.Time      `json:"updated_at"` // when the transition was decided
}

func pastInstanceOf(p *inspect.Past) PastInstance {
	return PastInstance{
		ID: p.ID, Workflow: p.Workflow, Definition: p.Definition, BusinessKey: p.BusinessKey, State: p.State, Open: p.Open,
		Version: p.Version, Newest: p.Newest, Data: raw(p.Data), Erased: p.Erased, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
}

// CommandRef names a command of an instance.
type CommandRef struct {
	Transition string `json:"transition"`
	Scope      string `json:"scope"`
	Key        string `json:"key"`
}

func refOf(b *transitions.CommandRef) *CommandRef {
	if b == nil {
		return nil
	}
	return &CommandRef{Transition: b.Transition, Scope: b.Scope, Key: b.Key}
}

// InstancePage is a page of instances.
type InstancePage struct {
	Instances []Instance `json:"instances"`
	Next      string     `json:"next,omitempty"` // the cursor of the next page, "" on the last; also where this one has few
}

// Entry is one transition of an instance, as its audit row says.
type Entry struct {
	Version    int64             `json:"version"`
	Position   int64             `json:"position"`
	Transition string            `json:"transition"`
	From       workflow.State    `json:"from,omitempty"` // "" for the creation
	To         workflow.State    `json:"to"`
	Actor      string            `json:"actor"`
	Proof      string            `json:"proof,omitempty"` // how it was known who that is, and who acted as him
	Reason     string            `json:"reason,omitempty"`
	Payload    jsontext.Value    `json:"payload"`
	Data       jsontext.Value    `json:"data"` // after the transition
	Scope      string            `json:"scope"`
	Key        string            `json:"key"`
	Cause      transitions.Cause `json:"cause"`               // what it comes from
	CausedBy   string            `json:"caused_by,omitempty"` // which one of these it was, where it has a name
	At         time.Time         `json:"at"`
	Hash       string            `json:"hash"` // hex SHA-256, chained to the entry before
}

// History is a piece of an instance's history, oldest first.
type History struct {
	Instance uuid.UUID `json:"instance"`
	Entries  []Entry   `json:"entries"`
	// NextAfter asks for the next piece as ?after=; 0 when this piece is not full.
	NextAfter int64 `json:"next_after,omitzero"`
}

// CommandStatus is where a command stands.
type CommandStatus struct {
	Scope      string             `json:"scope"`
	Key        string             `json:"key"`
	Status     transitions.Status `json:"status"`
	Workflow   string             `json:"workflow"`
	Transition string             `json:"transition"`
	Instance   uuid.UUID          `json:"instance,omitzero"`
	Version    int64              `json:"version,omitzero"`  // of the instance, made by the command
	Position   int64              `json:"position,omitzero"` // of that transition in the log
	Code       int                `json:"code,omitzero"`     // the HTTP status of the answer

	// Of a command that is or was in flight:
	Attempt     int            `json:"attempt,omitzero"`       // which one it is, from 1
	Failures    int            `json:"failures,omitzero"`      // attempts that failed or were lost
	Failure     string         `json:"failure,omitempty"`      // what the newest of them said
	Progress    jsontext.Value `json:"progress,omitempty"`     // the newest report of its activity
	RunAt       time.Time      `json:"run_at,omitzero"`        // when it is due
	LockedUntil time.Time      `json:"locked_until,omitzero"`  // until then the attempt need not be heard of
	CancelledBy string         `json:"cancelled_by,omitempty"` // who asked it to stop
	Stuck       string         `json:"stuck,omitempty"`        // why it waits for an operator

	// In the list of those that wait for an operator:
	BusinessKey string `json:"business_key,omitempty"` // of the instance
	Undo        bool   `json:"undo,omitzero"`          // it is the undo of the transition's effect
	Effect      string `json:"effect,omitempty"`       // the key that its activity sends along

	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
	ExpiresAt time.Time      `json:"expires_at,omitzero"` // until then the answer is replayed
	Result    jsontext.Value `json:"result,omitempty"`    // the answer of a command that succeeded
	Problem   jsontext.Value `json:"problem,omitempty"`   // the answer of one that failed
}

// StuckPage is a page of commands that wait for an operator, the longest waiting
// first.
type StuckPage struct {
	Commands []CommandStatus `json:"commands"`
	Next     string          `json:"next,omitempty"` // the cursor of the next page, "" on the last
}

// PausedList is the workflows of which nothing new is begun.
type PausedList struct {
	Workflows []PausedWorkflow `json:"workflows"`
}

// SinkList is the sinks, by name.
type SinkList struct {
	Sinks []SinkInfo `json:"sinks"`
}

// SinkPage is how a sink stands, and a page of its cursors, by tenant.
type SinkPage struct {
	Sink    SinkInfo     `json:"sink"`
	Cursors []SinkCursor `json:"cursors"`
	Next    string       `json:"next,omitempty"` // the cursor of the next page, "" on the last
}

// DeadPage is a page of events that a sink has not got, by tenant, instance and
// position.
type DeadPage struct {
	Dead []DeadLetter `json:"dead"`
	Next string       `json:"next,omitempty"` // the cursor of the next page, "" on the last
}

// DeadChange is how many dead letters were redriven or skipped.
type DeadChange struct {
	Changed int64 `json:"changed"`
}

// WorkflowSummary is a workflow in the list of all.
type WorkflowSummary struct {
	Name    string           `json:"name"`
	Version int              `json:"version"`
	Hash    string           `json:"hash"`
	States  []workflow.State `json:"states"`
}

// WorkflowList is every workflow, by name, in its newest version.
type WorkflowList struct {
	Workflows []WorkflowSummary `json:"workflows"`
}

// Events is a piece of the log, in order.
type Events struct {
	Events []jsontext.Value `json:"events"` // CloudEvents 1.0
	// NextAfter asks for what follows as ?after=. Everything up to it was looked
	// at, so it also moves over events that the filter left out.
	NextAfter int64 `json:"next_after"`
	// Head is the newest position of the log. NextAfter reaches it when there is
	// nothing more.
	Head int64 `json:"head"`
}

// Verification is the outcome of checking audit chains.
type Verification struct {
	Intact    bool    `json:"intact"`
	Instances int64   `json:"instances"` // chains checked
	Entries   int64   `json:"entries"`   // rows checked
	Broken    []Break `json:"broken"`
}

func verificationOf(v *inspect.Verification) Verification {
	return Verification{Intact: len(v.Broken) == 0, Instances: v.Instances, Entries: v.Entries,
		Broken: each(v.Broken, func(b *inspect.Break) Break { return Break(*b) })}
}

// Case is the whole of one instance, as an operator wants to see it.
type Case struct {
	Instance InstanceView    `json:"instance"`
	InFlight []CommandStatus `json:"in_flight"`        // the command whose outcome takes it on, and undos
	Earlier  int64           `json:"earlier,omitzero"` // transitions before those of the timeline
	Timeline []Entry         `json:"timeline"`         // the newest ones, in order
	Chain    Verification    `json:"chain"`            // of its audit rows
}

// CaseOf is a case as the interface shows it.
func CaseOf(c *inspect.Case) Case {
	return Case{Instance: viewOf(&c.View), InFlight: each(c.InFlight, statusOf), Earlier: c.Earlier,
		Timeline: each(c.Timeline, entryOf), Chain: verificationOf(&c.Chain)}
}

// raw makes stored JSON part of an answer. What is not there is null.
func raw(b []byte) jsontext.Value {
	if len(b) == 0 {
		return jsontext.Value("null")
	}
	return b
}
