package transitions

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Instance is the row of an instance.
type Instance struct {
	Tenant      string
	ID          uuid.UUID
	Workflow    string
	Definition  int // version of the definition
	BusinessKey string
	State       workflow.State
	Version     int64 // number of its transitions
	Data        []byte
	Attributes  map[string]string
	Actors      map[string][]string // actors of transitions with separation of duties
	Links       Links               // relations to other commands and instances
	Paused      bool                // no new work is started
	Open        bool                // not in a final state
	Chain       [32]byte            // hash of its last audit row
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Entry is an audit row: one transition of one instance.
type Entry struct {
	Tenant     string
	Instance   uuid.UUID
	Version    int64
	Position   int64 // assigned by the database
	Workflow   string
	Transition string
	From, To   workflow.State
	Actor      string
	Proof      string // how the actor, or the one acting for it, was authenticated; "" if unknown
	Reason     string
	Payload    []byte // canonical JSON
	Data       []byte // data after the transition
	Scope, Key string
	Cause      Cause // cause, unless the scope implies it; see CauseOf
	At         time.Time
	Hash       [32]byte // chained to the instance's previous entry

	// Other parts of the hash. Only set by decisions, not by readers.
	Before, After [32]byte // digest of the instance's Standing; Before is zero for a creation
	Rest          []byte   // SHA-256 of the instance's Rest, nil if unchanged
	Emitted       []byte   // see EmittedDigest
}

// Links are the relations of an instance, stored in its row.
type Links struct {
	// InFlight is the command that moved the instance to an in-between state, and whose completion moves it on.
	InFlight *CommandRef `json:"in_flight,omitempty"`
	// Effects are undone by a later failure, in the order of their completion. At MaxEffects, or
	// MaxEffectBytes of payloads and results, no other activity with an undoable effect is started.
	Effects []Effect `json:"effects,omitempty"`
	Parent  *Parent  `json:"parent,omitempty"`
	// Deferred are completions of children that the instance has not processed yet, in order of arrival.
	Deferred []Completion `json:"deferred,omitempty"`
	// Migrations are the instance's migrations in order. Without one it has its first version.
	Migrations []Migrated `json:"migrations,omitempty"`
}

// Migrated is a migration of an instance to another version of its workflow.
type Migrated struct {
	Version int64 `json:"version"` // of the instance after the migration
	From    int   `json:"from"`    // previous version of the definition
}

// DefinitionAt returns the version of the definition after a transition.
func (i *Instance) DefinitionAt(version int64) int {
	for _, m := range i.Links.Migrations {
		if version < m.Version {
			return m.From
		}
	}
	return i.Definition
}

// CommandRef identifies a command of the instance.
type CommandRef struct {
	Transition string `json:"transition"`
	Scope      string `json:"scope"`
	Key        string `json:"key"`
}

// Effect is a completed activity that can be undone.
type Effect struct {
	CommandRef
	From    workflow.State `json:"from,omitempty"` // state in which it was accepted, if relevant
	Payload jsontext.Value `json:"payload,omitzero"`
	Result  jsontext.Value `json:"result,omitzero"`
}

// Completion is the completion of a child, as a command to its parent.
type Completion struct {
	Child uuid.UUID `json:"child"`
	End   string    `json:"end"` // transition of the parent
}

// Parent identifies the parent of a child and what the child's completion causes.
type Parent struct {
	Workflow string    `json:"workflow"`
	Instance uuid.UUID `json:"instance"`
	End      string    `json:"end,omitempty"` // transition of the parent

	// Place is the key of the command that started a child with a business key: the version of the
	// parent and the number of the child. It is "" for other children, whose ids follow from it.
	Place string `json:"place,omitempty"`
}
