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
	Version     int64  // the instance's version that the command made; 0 if it made none
	Position    int64  // the position of that transition; 0 if there is none
	Code        int    // the HTTP status of the answer
	Body        []byte // the answer as it is stored, without its position; see WithPosition
	CreatedAt   time.Time
	FinishedAt  time.Time
	ExpiresAt   time.Time
	LockedUntil time.Time
}

// Claim is what an attempt with a key amounts to.
type Claim int

// The claims.
const (
	ClaimNew          Claim = iota // nobody used the key: decide
	ClaimReplay                    // it succeeded: answer as then
	ClaimActive                    // it is being worked on
	ClaimStale                     // it was being worked on by somebody whose lease ran out
	ClaimRetryable                 // it failed and may be tried again
	ClaimFinalFailure              // it was refused: answer as then
	ClaimMismatch                  // the key was used with another request
	ClaimExpired                   // its answer is gone, and it must not run again
	claims
)

// Claims is how many claims there are.
const Claims = int(claims)

var claimNames = [Claims]string{"new", "replayed", "active", "stale", "retryable", "final", "mismatched", "expired"}

// String names the claim as the metrics do.
func (c Claim) String() string { return claimNames[c] }

// Classify says what an attempt with this fingerprint amounts to, given what is
// stored under its key (nil: nothing).
func Classify(r *Record, fingerprint [32]byte, now time.Time) Claim {
	switch {
	case r == nil:
		return ClaimNew
	case r.Fingerprint != fingerprint:
		return ClaimMismatch
	case r.Status == Expired:
		return ClaimExpired
	}
	expired := !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
	switch r.Status {
	case Succeeded:
		if expired {
			return ClaimExpired
		}
		return ClaimReplay
	case FailedFinal:
		if expired {
			return ClaimExpired
		}
		return ClaimFinalFailure
	case FailedRetryable:
		return ClaimRetryable
	case Processing:
		if !now.Before(r.LockedUntil) {
			return ClaimStale
		}
	}
	return ClaimActive
}

// Answer is what the caller of a settled claim gets: the replay, or the error
// that says why there is none.
func (r *Record) Answer(c Claim) (Receipt, error) {
	switch c {
	case ClaimReplay, ClaimFinalFailure:
		return r.receipt(), nil
	case ClaimMismatch:
		return Receipt{}, workflow.Errorf(workflow.KeyReused, "this idempotency key was used with another request: another workflow, transition, instance, payload, expected version or actor; a new intent needs a new key")
	case ClaimExpired:
		return Receipt{}, workflow.Errorf(workflow.KeyExpired, "this idempotency key is past its horizon; it will not run again")
	default:
		return Receipt{}, workflow.Errorf(workflow.InProgress, "a command with this idempotency key is being worked on")
	}
}

func (r *Record) receipt() Receipt {
	position := max(r.Position, 0) // a provisional one is nobody's business
	return Receipt{Status: r.Code, Replayed: true, Instance: r.Instance, Version: r.Version,
		Position: position, Body: WithPosition(r.Body, position)}
}
