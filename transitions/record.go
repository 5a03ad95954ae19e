package transitions

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Status is the status of a stored command.
type Status string

// Statuses of a command.
const (
	Pending         Status = "pending"
	Processing      Status = "processing"
	Succeeded       Status = "succeeded"
	FailedRetryable Status = "failed_retryable"
	FailedFinal     Status = "failed_final"
	Expired         Status = "expired"
)

// Statuses lists the statuses in the order of a command's life.
var Statuses = []Status{Pending, Processing, FailedRetryable, Succeeded, FailedFinal, Expired}

// Phase is what a command in flight waits for.
type Phase string

// Phases.
const (
	Scheduled Phase = "scheduled" // its scheduled time
	Working   Phase = "working"   // completion of its activity
	Undoing   Phase = "undoing"   // completion of an undo
	InSQL     Phase = "sql"       // completion by a caller of the SQL functions
)

// Reasons for which a command in flight waits for an operator.
const (
	StuckUnknown     = "unknown_outcome" // it is unknown whether the effect happened, and it must not happen twice
	StuckUndo        = "undo_failed"
	StuckUndecidable = "undecidable" // its outcome or the command itself cannot be decided
)

// Record is the stored state of a command.
type Record struct {
	Scope, Key  string
	Fingerprint [32]byte
	Status      Status
	Workflow    string
	Transition  string
	Instance    uuid.UUID
	Version     int64  // newest version of the instance made by the command; 0: none
	Position    int64  // position of that transition; 0: none
	Code        int    // HTTP status of the result
	Body        []byte // stored result without its position; see WithPosition
	Actor       string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	FinishedAt  time.Time
	ExpiresAt   time.Time

	// Of a command that is or was in flight:
	Phase       Phase // "" when complete
	Attempt     int   // fencing token: number of its claims
	Failures    int   // number of failed or lost attempts
	Revision    int   // number of changes of the record
	ClaimedBy   string
	ClaimedAt   time.Time
	LockedUntil time.Time
	RunAt       time.Time // when it is due; zero while a node works on it
	Request     []byte    // see Request
	Progress    []byte    // last progress report of its activity, JSON
	Failure     string    // message of the last failure
	Stuck       string    // reason for waiting for an operator
	CancelledBy string    // who requested the cancellation

	// Only in lists of commands in flight:
	BusinessKey string // of its instance, or ""
	Reason      string // elsewhere in the request
	Proof       string // authentication of the actor; elsewhere in the request
}

// InFlight reports whether the command is accepted but not complete.
func (r *Record) InFlight() bool { return r.Phase != "" }

// Effect returns the key that the command's activity sends along. For an undo it is its own key.
func (r *Record) Effect(tenant string) string {
	if r.Phase == Undoing {
		return r.Key
	}
	return EffectKey(Ref{tenant, r.Scope, r.Key})
}

// Receipt returns the receipt of the command: the stored one, or its status in flight.
func (r *Record) Receipt() Receipt {
	position := max(r.Position, 0) // negative positions are provisional
	receipt := Receipt{Status: 202, Replayed: true, Instance: r.Instance, Version: r.Version, Position: position}
	if r.Status == Succeeded || r.Status == FailedFinal {
		receipt.Status, receipt.Body = r.Code, WithPosition(r.Body, position)
	} else {
		receipt.Record = r
	}
	return receipt
}

// Action is an operator's action on an instance or a command in flight.
type Action string

// Actions. They are executed as commands, with a key and an audit row.
const (
	Pause   Action = "pause"   // start nothing new on the instance; work in flight completes
	Resume  Action = "resume"  // end a pause
	Retry   Action = "retry"   // retry a stuck command with all its attempts
	Resolve Action = "resolve" // complete a stuck command with a result
	Abandon Action = "abandon" // abandon a stuck command
	Migrate Action = "migrate" // move the instance to another version of its workflow
	Correct Action = "correct" // correct the state or the data of the instance
)

// Operation is an action with its parameters.
type Operation struct {
	Action Action
	Reason string
	Target CommandRef     // of retry, resolve and abandon: the stuck command
	Result jsontext.Value // of resolve: the activity's result
	To     int            // of migrate: the version
	State  workflow.State // of correct: the new state; "": unchanged
	Data   jsontext.Value // of correct: an object with the changed members; see [workflow.Workflow.Corrected]
}
