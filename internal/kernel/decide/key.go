package decide

import (
	"cmp"
	"strings"
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

// Keep holds the retention periods of a key that its caller or action requested. Zero means the workflow's.
type Keep struct {
	Replay    time.Duration // of the answer, as the caller asked
	Tombstone time.Duration // after that, as the caller asked
	Answer    time.Duration // of the answer, at least, as the workflow's action asked
}

// Until returns when the retention period of an answer given now ends. h are the workflow's periods, resolved.
func (k Keep) Until(h workflow.Horizons, now time.Time) time.Time {
	return now.Add(max(cmp.Or(k.Replay, h.Replay), k.Answer))
}

// LateScope is the prefix of the scope of a command that retention creates when it abandons an activity of an unknown workflow. The next
// node that knows the workflow moves the instance to the activity's failure state.
const LateScope = transitions.Reserved + "late:"

// AbandonedAnswer returns the answer to an abandoned command.
func AbandonedAnswer() []byte {
	return transitions.ProblemOf(workflow.Errorf(workflow.CommandAbandoned, "no node claimed it in time or knows its workflow")).JSON()
}

// abandoned abandons a command that no node claimed for longer than its answer would be replayed: its caller has stopped retrying. replay
// is the workflow's retention period of answers.
//
// Only commands of callers expire, at their first claim, and not during a pause. A message does not: its sender does not retry.
func (f *InFlight) abandoned(replay time.Duration, now time.Time) (v Verdict, is bool) {
	if strings.HasPrefix(f.Scope, LateScope) {
		return failedFor(workflow.FailureUntaken, "no node claimed it in time or knew its workflow", 0, false), true
	}
	if f.Phase != transitions.Scheduled && f.Phase != transitions.Working ||
		strings.HasPrefix(f.Scope, transitions.Reserved) || strings.HasPrefix(f.Scope, transitions.InboxScope("")) ||
		f.RunAt.IsZero() || f.Attempt > 1 || f.Paused {
		return Verdict{}, false
	}
	asked, err := f.Asked()
	if err != nil {
		return Undecidable(err), true
	}
	if replay = cmp.Or(time.Duration(asked.Replay), replay); now.Before(f.RunAt.Add(replay)) {
		return Verdict{}, false
	}
	message := "it was due at " + f.RunAt.UTC().Format(time.RFC3339) + ", and no node claimed it for " + replay.String()
	return failedFor(workflow.FailureUntaken, message, 0, false), true
}
