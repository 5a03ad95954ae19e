package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// KeyVerdict is the meaning of an attempt with a key.
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

func (v KeyVerdict) String() string { return keyVerdictNames[v] }

// Classify returns the meaning of an attempt with this fingerprint, given the stored record of its key (nil for none).
func Classify(r *transitions.Record, fingerprint [32]byte, now time.Time) KeyVerdict {
	switch {
	case r == nil:
		return KeyNew
	case r.Fingerprint != fingerprint:
		return KeyMismatch
	case r.Status == transitions.Expired:
		return KeyGone
	}
	expired := !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
	switch r.Status {
	case transitions.Succeeded:
		if expired {
			return KeyGone
		}
		return KeyReplay
	case transitions.FailedFinal:
		if expired {
			return KeyGone
		}
		return KeyRefused
	case transitions.FailedRetryable:
		return KeyRetryable
	case transitions.Processing:
		if !now.Before(r.LockedUntil) {
			return KeyStale
		}
	}
	return KeyActive
}

// Answer returns the answer to a caller for a key with this verdict. r is the stored record: its answer is replayed, a command in flight is
// answered with its status, and any other verdict is an error.
func (v KeyVerdict) Answer(r *transitions.Record) (transitions.Receipt, error) {
	switch v {
	case KeyMismatch:
		return transitions.Receipt{}, workflow.Errorf(workflow.KeyReused, "this idempotency key was used with another request: "+
			"another workflow, transition, instance, payload, expected version, time or actor; a new intent needs a new key")
	case KeyGone:
		return transitions.Receipt{}, workflow.Errorf(workflow.KeyExpired, "this idempotency key is past its horizon; it will not run again")
	default:
		return r.Receipt(), nil
	}
}
