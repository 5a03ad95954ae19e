package workflow

import "errors"

// FailureKind is why work has failed for good.
type FailureKind string

// The kinds of failure.
const (
	FailureError     FailureKind = "failed"    // the work's own error: final, or the last of its attempts
	FailureRefused   FailureKind = "refused"   // it was done, but the workflow refused its result
	FailureCancelled FailureKind = "cancelled" // somebody asked for it to stop
	FailureAbandoned FailureKind = "abandoned" // its workers were lost too often, or an operator gave it up
	FailureUntaken   FailureKind = "untaken"   // no node executed it within its retention period
)

// Failure is what the failure action of an activity gets.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"` // of the last error, safe to show
	// Attempts is how often the work was tried, at most Retry.Attempts. Claims without a try and checks do not count.
	Attempts int `json:"attempts"`
	// Unknown says that the effect may have happened all the same.
	Unknown bool `json:"unknown,omitzero"`
}

// Final says that no attempt can mend the error, so that the work is not tried
// again: a card that is refused, an address that does not exist. Its text and
// what it wraps stay as they were. Final(nil) is nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

// IsFinal reports whether the error, or one that it wraps, was made by [Final].
func IsFinal(err error) bool {
	_, final := errors.AsType[*finalError](err)
	return final
}

// NotDone marks an error of an attempt that certainly had no effect: no connection was made, or the request was refused before it was
// processed. Unlike [Final] it may be retried. An activity with [Activity.AskOperator] retries it without an operator, and if all attempts
// ended so, the failure is not [Failure.Unknown]. The text of err and the errors that it wraps stay the same. NotDone(nil) is nil.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return &notDoneError{err}
}

// IsNotDone reports whether the error, or one that it wraps, was made by [NotDone].
func IsNotDone(err error) bool {
	_, notDone := errors.AsType[*notDoneError](err)
	return notDone
}

type notDoneError struct{ error }

// Unwrap returns the error that says why.
func (e *notDoneError) Unwrap() error { return e.error }

type finalError struct{ error }

// Unwrap returns the error that is final.
func (e *finalError) Unwrap() error { return e.error }
