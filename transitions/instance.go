package transitions

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Instance is one case, one order: the row that a command changes.
type Instance struct {
	Tenant      string
	ID          uuid.UUID
	Workflow    string
	Definition  int // the version of the definition that it began with
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

// did returns the actors after actor did the transition. The map that it was
// given is not changed: an earlier decision may be made again.
func did(actors map[string][]string, transition, actor string) map[string][]string {
	if slices.Contains(actors[transition], actor) {
		return actors
	}
	out := make(map[string][]string, len(actors)+1)
	for k, v := range actors {
		out[k] = v
	}
	out[transition] = append(slices.Clip(out[transition]), actor)
	return out
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
