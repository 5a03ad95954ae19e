package transitions

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
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
	Stuck       string    // why it waits for a person
	CancelledBy string    // who asked it to stop

	BusinessKey string // of its instance, "" where it has none; only in the list of what is stuck
}

// InFlight reports whether the command is accepted and not finished.
func (r *Record) InFlight() bool { return r.Phase != "" }

// Flight is the record as its next attempt would see it.
func (r *Record) Flight(tenant string) *InFlight {
	return &InFlight{Ref: Ref{tenant, r.Scope, r.Key}, Fingerprint: r.Fingerprint, Phase: r.Phase, Workflow: r.Workflow,
		Transition: r.Transition, Instance: r.Instance, Actor: r.Actor, Request: r.Request, Attempt: r.Attempt,
		Failures: r.Failures, RunAt: r.RunAt, CancelledBy: r.CancelledBy, CreatedAt: r.CreatedAt}
}

// Effect is the key that the command's activity sends along. An undo has it for its
// own key.
func (r *Record) Effect(tenant string) string {
	if r.Phase == Undoing {
		return r.Key
	}
	return EffectKey(Ref{tenant, r.Scope, r.Key})
}

// KeyVerdict is what an attempt with a key amounts to.
type KeyVerdict int

// The verdicts on a key.
const (
	KeyNew       KeyVerdict = iota // nobody used the key: decide
	KeyReplay                      // it succeeded: answer as then
	KeyActive                      // it is being worked on
	KeyStale                       // it was being worked on by somebody whose lease ran out
	KeyRetryable                   // it failed and may be tried again
	KeyRefused                     // it was refused: answer as then
	KeyMismatch                    // the key was used with another request
	KeyGone                        // its answer is gone, and it must not run again
	keyVerdicts
)

// KeyVerdicts is how many verdicts there are.
const KeyVerdicts = int(keyVerdicts)

var keyVerdictNames = [KeyVerdicts]string{"new", "replayed", "active", "stale", "retryable", "final", "mismatched", "expired"}

// String names the verdict as the metrics do.
func (c KeyVerdict) String() string { return keyVerdictNames[c] }

// Classify says what an attempt with this fingerprint amounts to, given what is
// stored under its key (nil: nothing).
func Classify(r *Record, fingerprint [32]byte, now time.Time) KeyVerdict {
	switch {
	case r == nil:
		return KeyNew
	case r.Fingerprint != fingerprint:
		return KeyMismatch
	case r.Status == Expired:
		return KeyGone
	}
	expired := !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
	switch r.Status {
	case Succeeded:
		if expired {
			return KeyGone
		}
		return KeyReplay
	case FailedFinal:
		if expired {
			return KeyGone
		}
		return KeyRefused
	case FailedRetryable:
		return KeyRetryable
	case Processing:
		if !now.Before(r.LockedUntil) {
			return KeyStale
		}
	}
	return KeyActive
}

// Answer is what the caller of a settled claim gets: the replay, where the
// command stands while it is in flight, or the error that says why there is
// neither.
func (r *Record) Answer(c KeyVerdict) (Receipt, error) {
	switch c {
	case KeyReplay, KeyRefused:
		return r.receipt(), nil
	case KeyActive, KeyStale, KeyRetryable:
		return r.standing(), nil
	case KeyMismatch:
		return Receipt{}, workflow.Errorf(workflow.KeyReused, "this idempotency key was used with another request: another workflow, transition, instance, payload, expected version, time or actor; a new intent needs a new key")
	default:
		return Receipt{}, workflow.Errorf(workflow.KeyExpired, "this idempotency key is past its horizon; it will not run again")
	}
}

// standing is the answer while the command is in flight.
func (r *Record) standing() Receipt {
	return Receipt{Status: 202, Replayed: true, Instance: r.Instance, Version: r.Version, Position: max(r.Position, 0), Record: r}
}

func (r *Record) receipt() Receipt {
	position := max(r.Position, 0) // a provisional one is nobody's business
	return Receipt{Status: r.Code, Replayed: true, Instance: r.Instance, Version: r.Version,
		Position: position, Body: WithPosition(r.Body, position)}
}

// Statuses are the statuses of a command, in the order of its life.
var Statuses = []Status{Pending, Processing, FailedRetryable, Succeeded, FailedFinal, Expired}
