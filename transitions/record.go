package transitions

import (
	"time"

	"github.com/google/uuid"
)

// Status is where a stored command stands.
type Status string

// The statuses of a command.
const (
	Pending         Status = "pending"
	Processing      Status = "processing"
	Succeeded       Status = "succeeded"
	FailedRetryable Status = "failed_retryable"
	FailedFinal     Status = "failed_final"
	Expired         Status = "expired"
)

// Statuses are the statuses of a command, in the order of its life.
var Statuses = []Status{Pending, Processing, FailedRetryable, Succeeded, FailedFinal, Expired}

// Phase is what a command in flight waits for.
type Phase string

// The phases.
const (
	Scheduled Phase = "scheduled" // its time, to be decided then
	Working   Phase = "working"   // the outcome of its activity
	Undoing   Phase = "undoing"   // the outcome of an undo
	InSQL     Phase = "sql"       // whoever claimed it by the functions in SQL
)

// Why a command in flight waits for an operator.
const (
	StuckUnknown     = "unknown_outcome" // nobody knows whether the effect happened, and it must not happen twice
	StuckUndo        = "undo_failed"
	StuckUndecidable = "undecidable" // what it came to, or the command itself, cannot be decided
)

// Record is what the store knows of a (tenant, scope, key).
type Record struct {
	Scope, Key  string
	Fingerprint [32]byte
	Status      Status
	Workflow    string
	Transition  string
	Instance    uuid.UUID
	Version     int64  // the newest version of the instance that the command made; 0 if it made none
	Position    int64  // the position of that transition; 0 if there is none
	Code        int    // the HTTP status of the answer
	Body        []byte // the answer as it is stored, without its position; see WithPosition
	Actor       string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	FinishedAt  time.Time
	ExpiresAt   time.Time

	// Of a command that is or was in flight:
	Phase       Phase // "" when it is finished
	Attempt     int   // the fencing token: counts its claims
	Failures    int   // attempts that failed or were lost
	Revision    int   // counts the changes of the record
	ClaimedBy   string
	ClaimedAt   time.Time
	LockedUntil time.Time
	RunAt       time.Time // when it is due; zero while it is worked on
	Request     []byte    // see Request
	Progress    []byte    // the newest report of its activity, JSON
	Failure     string    // the message of the newest failure
	Stuck       string    // why it waits for an operator
	CancelledBy string    // who asked it to stop

	// Only in lists of commands in flight:
	BusinessKey string // of its instance, "" where it has none
	Reason      string // why it was asked; elsewhere the request has it
	Proof       string // how it was known who the actor is; elsewhere the request has it
}

// InFlight reports whether the command is accepted and not finished.
func (r *Record) InFlight() bool { return r.Phase != "" }

// Effect is the key that the command's activity sends along. An undo has it for its
// own key.
func (r *Record) Effect(tenant string) string {
	if r.Phase == Undoing {
		return r.Key
	}
	return EffectKey(Ref{tenant, r.Scope, r.Key})
}

// Receipt is the answer of the command as it stands: the stored one, or that it is in
// flight.
func (r *Record) Receipt() Receipt {
	position := max(r.Position, 0) // a negative one is provisional and not shown
	receipt := Receipt{Status: 202, Replayed: true, Instance: r.Instance, Version: r.Version, Position: position}
	if r.Status == Succeeded || r.Status == FailedFinal {
		receipt.Status, receipt.Body = r.Code, WithPosition(r.Body, position)
	} else {
		receipt.Record = r
	}
	return receipt
}
