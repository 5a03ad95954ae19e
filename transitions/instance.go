package transitions

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Instance is one case, one order: the row that a command changes.
type Instance struct {
	Tenant      string
	ID          uuid.UUID
	Workflow    string
	Definition  int // the version of the definition that it is on
	BusinessKey string
	State       workflow.State
	Version     int64 // counts its transitions
	Data        []byte
	Attributes  map[string]string
	Actors      map[string][]string // who did the transitions that others exclude the actors of
	Links       Links               // what ties it to others
	Paused      bool                // nothing new is begun on it
	Open        bool                // not in a final state
	Chain       [32]byte            // the hash of its last audit row
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Entry is an audit row: one transition of one instance.
type Entry struct {
	Tenant     string
	Instance   uuid.UUID
	Version    int64
	Position   int64 // given by the database
	Workflow   string
	Transition string
	From, To   workflow.State
	Actor      string
	Proof      string // how it was known who that is, and who acted as him; "" where that was not asked
	Reason     string
	Payload    []byte // canonical JSON
	Data       []byte // the data after it
	Scope, Key string
	Cause      Cause // what it comes from, where the scope does not tell; see CauseOf
	At         time.Time
	Hash       [32]byte // chained to the instance's previous entry

	// What else enters the hash. Only of a decision; readers do not fill it.
	Before, After [32]byte // the digest of the instance's Standing; Before is zero for a creation
	Rest          []byte   // the SHA-256 of the instance's Rest, nil where that is as before
	Emitted       []byte   // see EmittedDigest
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
	// Deferred are the completions of children that the instance has not taken yet, in the order of their arrival.
	Deferred []Completion `json:"deferred,omitempty"`
	// Migrations are those that the instance has come to its version by, in order. Without one it began with it.
	Migrations []Migrated `json:"migrations,omitempty"`
}

// Migrated is a migration of an instance to another version of its workflow.
type Migrated struct {
	Version int64 `json:"version"` // of the instance, that it made
	From    int   `json:"from"`    // the version of the definition that it was on before
}

// DefinitionAt is the version of the definition that the instance was on after its transition to a version.
func (i *Instance) DefinitionAt(version int64) int {
	for _, m := range i.Links.Migrations {
		if version < m.Version {
			return m.From
		}
	}
	return i.Definition
}

// CommandRef is a command of the instance.
type CommandRef struct {
	Transition string `json:"transition"`
	Scope      string `json:"scope"`
	Key        string `json:"key"`
}

// Effect is an activity that was done and can be undone.
type Effect struct {
	CommandRef
	From    workflow.State `json:"from,omitempty"` // where it was accepted, if what it is depends on that
	Payload jsontext.Value `json:"payload,omitzero"`
	Result  jsontext.Value `json:"result,omitzero"`
}

// Completion is the end of a child as a command to its parent.
type Completion struct {
	Child uuid.UUID `json:"child"`
	End   string    `json:"end"` // the transition of the parent
}

// Parent is who started a child, and what the child's end causes there.
type Parent struct {
	Workflow string    `json:"workflow"`
	Instance uuid.UUID `json:"instance"`
	End      string    `json:"end,omitempty"` // a transition of the parent

	// Place is the key of the command that has started a child with a business key: the version of the parent, and the number of the
	// child. It is "" for another child, whose id follows from it.
	Place string `json:"place,omitempty"`
}
