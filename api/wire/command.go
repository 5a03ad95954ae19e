package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
)

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

	// Of a command that is in flight, and not while it is watched:
	Reason string `json:"reason,omitempty"` // why it was asked

	// Of a command that is or was in flight:
	Attempt     int            `json:"attempt,omitzero"`       // claims of it: the fencing token of the newest
	Failures    int            `json:"failures,omitzero"`      // attempts that failed or were lost
	Failure     string         `json:"failure,omitempty"`      // what the newest of them said
	Progress    jsontext.Value `json:"progress,omitempty"`     // the newest report of its activity
	RunAt       time.Time      `json:"run_at,omitzero"`        // when it is due
	LockedUntil time.Time      `json:"locked_until,omitzero"`  // until then the attempt need not be heard of
	CancelledBy string         `json:"cancelled_by,omitempty"` // who asked it to stop
	Stuck       string         `json:"stuck,omitempty"`        // why it waits for an operator

	// For who may operate it, and not while it is watched:
	Actor     string    `json:"actor,omitempty"`      // who sent it
	Proof     string    `json:"proof,omitempty"`      // while it is in flight: how it was known who that is
	ClaimedBy string    `json:"claimed_by,omitempty"` // the node that works on it, or did last
	ClaimedAt time.Time `json:"claimed_at,omitzero"`  // since when

	// In lists of commands in flight:
	BusinessKey string `json:"business_key,omitempty"` // of the instance
	Undo        bool   `json:"undo,omitzero"`          // it is the undo of the transition's effect
	Effect      string `json:"effect,omitempty"`       // the key that its activity sends along

	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
	ExpiresAt time.Time      `json:"expires_at,omitzero"` // until then the answer is replayed
	Result    jsontext.Value `json:"result,omitempty"`    // the answer of a command that succeeded
	Problem   jsontext.Value `json:"problem,omitempty"`   // the answer of one that failed
}

// Existing is the answer to a creation whose business key is taken, for a caller who may not read the instance that has it.
type Existing struct {
	Workflow   string `json:"workflow"`
	Transition string `json:"transition"`
	Existing   bool   `json:"existing"` // true
}

// BulkCommand is one command of a bulk request.
type BulkCommand struct {
	Workflow    string         `json:"workflow,omitzero"` // may be left out with Instance
	Transition  string         `json:"transition"`
	Instance    string         `json:"instance,omitzero"`
	BusinessKey string         `json:"business_key,omitzero"`
	Key         string         `json:"key"`
	Scope       *string        `json:"scope,omitzero"`
	Actor       string         `json:"actor,omitzero"` // whom the caller acts as; see act-as
	Payload     jsontext.Value `json:"payload,omitempty"`
	Reason      string         `json:"reason,omitzero"` // why, for the audit row and the events
	IfVersion   *int64         `json:"if_version,omitzero"`
	NotBefore   *string        `json:"not_before,omitzero"`  // RFC 3339
	HappenedAt  *string        `json:"happened_at,omitzero"` // of an import: RFC 3339; see import

	// How long the key is to be good, in seconds.
	ReplayFor    jsontext.Value `json:"replay_for,omitempty"`
	TombstoneFor jsontext.Value `json:"tombstone_for,omitempty"` // or "forever"
}

// BulkResult is what one command of a bulk request got.
type BulkResult struct {
	Status   int            `json:"status"`
	Replayed bool           `json:"replayed"`
	Body     jsontext.Value `json:"body"`
}
