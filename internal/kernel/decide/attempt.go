package decide

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The policy of attempts of a command in flight, shared by the engine and the simulation in pawltest.

// Verdict is the result of an attempt. At most one field is set; without one nothing remains to be done.
type Verdict struct {
	Outcome *Outcome // it has ended
	Back    *Back    // it is given back
}

// Back describes how a command is released.
type Back struct {
	Status      transitions.Status
	Least, Most time.Duration // it is due after a random time between them
	Failed      bool          // one failure more
	Failure     string        // its message; "" leaves the one before
	Stuck       string        // why an operator has to see to it; "": it is due
	Request     []byte        // replaces what was asked; nil: that stays
	Unsure      bool          // the attempt was begun, and it is not known what it has done
	None        bool          // the attempt was begun, and has certainly done nothing
}

// Causes of a done context of an attempt; see also [CancelledError].
var (
	ErrStopping = errors.New("this node is stopping")
	ErrLost     = errors.New("the lease was lost: another attempt has begun")
	ErrLapsed   = errors.New("the lease was lost: it ran out before it could be prolonged")
	ErrTimeout  = errors.New("the attempt took too long")
)

// CancelledError is the cause of the context of a cancelled command.
type CancelledError struct {
	By string // "": the instance went on without it
}

func (e *CancelledError) Error() string {
	if e.By == "" {
		return "cancelled: the instance continued without it"
	}
	return "cancelled by " + e.By
}

var (
	errNotDone = errors.New("the check found no effect, and no attempts are left")
	errPanic   = errors.New("the activity panicked; the log says where")
)

var (
	// undecided is the retry policy of scheduled commands that fail for a temporary reason: another node may be newer.
	undecided = workflow.Retry{Attempts: 5, First: time.Second, Max: time.Minute}
	// notNow is the backoff of a command whose workflow is paused, or unknown to this node.
	notNow = workflow.Retry{First: time.Second, Max: 30 * time.Second}
)

func ended(o Outcome) Verdict { return Verdict{Outcome: &o} }

func failedFor(kind workflow.FailureKind, message string, attempts int, unknown bool) Verdict {
	return ended(Outcome{Failure: &workflow.Failure{Kind: kind, Message: message, Attempts: attempts, Unknown: unknown}})
}

// Later releases a command without counting a failure.
func Later(wait time.Duration) Verdict {
	return Verdict{Back: &Back{Status: transitions.Pending, Least: wait / 2, Most: wait}}
}

// NotHere releases a command that this node cannot execute now.
func (f *InFlight) NotHere() Verdict { return Later(notNow.Ceiling(f.Attempt)) }

// HandOver releases a command together with its outcome, which this node's build cannot store because of err. The work is not repeated.
func (f *InFlight) HandOver(o Outcome, err error) Verdict {
	asked, broken := f.Asked()
	if broken != nil {
		return Undecidable(broken)
	}
	asked.Outcome = &o
	v := f.NotHere()
	v.Back.Request, v.Back.Failure = asked.encode(), messageOf(err)
	return v
}

// again releases a command for a retry after a random time ("full jitter").
func again(most time.Duration, failure string) Verdict {
	return Verdict{Back: &Back{Status: transitions.FailedRetryable, Most: most, Failed: true, Failure: failure}}
}

// ask leaves a command to an operator. An activity may have had its effect.
func ask(why, failure string) Verdict {
	return Verdict{Back: &Back{Status: transitions.FailedRetryable, Failed: true, Failure: failure, Stuck: why,
		Unsure: why != transitions.StuckUndo}}
}

// askAbout is ask without counting a failure: the claim of the command has counted it.
func askAbout(why, failure string) Verdict {
	return Verdict{Back: &Back{Status: transitions.FailedRetryable, Failure: failure, Stuck: why}}
}

// Undecidable leaves a command to an operator that cannot be decided.
func Undecidable(err error) Verdict { return ask(transitions.StuckUndecidable, messageOf(err)) }

// Cancelled returns the outcome of a command that was cancelled before its next attempt. A claim that was released without an attempt had
// no effect.
func (f *InFlight) Cancelled() Verdict {
	unknown := f.Phase == transitions.Working && f.earlier()
	return failedFor(workflow.FailureCancelled, (&CancelledError{f.CancelledBy}).Error(), f.Failures, unknown)
}

// failureCredential is the kind of a scheduled command whose credential is no longer valid.
const failureCredential workflow.FailureKind = "credential_ended"

// Unallowed is the outcome of a scheduled command whose credential is no longer valid, for the reason why.
func (f *InFlight) Unallowed(why string) Outcome {
	return Outcome{Failure: &workflow.Failure{Kind: failureCredential, Message: shortened(why, maxFailure), Attempts: f.Failures}}
}

// Left returns the verdict on a command whose instance was migrated to a version without its activity, after it had continued without the
// command. An undo requires a node that has the activity.
func (f *InFlight) Left() Verdict {
	if f.Phase == transitions.Undoing {
		return f.NotHere()
	}
	return f.Cancelled()
}

// BeforeDue returns the verdict on a scheduled command that needs no decision. replay is the workflow's retention period of answers.
func (f *InFlight) BeforeDue(replay time.Duration, now time.Time) (v Verdict, decided bool) {
	if f.CancelledBy != "" {
		return f.Cancelled(), true
	}
	return f.abandoned(replay, now)
}

// Before returns the verdict on a command that needs no attempt. replay is the workflow's retention period of answers.
func (f *InFlight) Before(w *workflow.Work, replay time.Duration, now time.Time) (v Verdict, decided bool) {
	exhausted := f.Failures >= w.Retry.Attempts // only by lost leases: the last failure of another kind ends it
	lost := fmt.Sprintf("its worker was lost %d times", f.Failures)
	if asked, err := f.Asked(); err == nil && asked.Outcome != nil { // another node could not store it
		return ended(*asked.Outcome), true
	}
	switch {
	case strings.HasPrefix(f.Scope, LateScope):
	case f.Phase == transitions.Undoing:
		if exhausted {
			return askAbout(transitions.StuckUndo, lost), true
		}
	case f.CancelledBy != "":
		return f.Cancelled(), true
	case f.checksFirst(w) && f.Failures < checks*w.Retry.Attempts:
	case f.doubtful() && w.AskOperator:
		return askAbout(transitions.StuckUnknown, "the worker was lost; its effect is unknown"), true
	case exhausted:
		return failedFor(workflow.FailureAbandoned, lost, w.Retry.Attempts, true), true
	}
	return f.abandoned(replay, now)
}

// doubtful reports whether the effect of an earlier attempt is unknown and no operator has resolved it.
func (f *InFlight) doubtful() bool { return f.Unsure || f.TakenFrom != "" }

// earlier reports whether an earlier attempt may have had its effect. Claims released without an attempt and attempts that returned NotDone
// have none.
func (f *InFlight) earlier() bool {
	if f.doubtful() || f.Failures > 0 && !f.Nothing {
		return true
	}
	asked, err := f.Asked()
	return err == nil && asked.Tried
}

// checks multiplies the number of workers that a command may lose if its activity has a Check.
const checks = 2

// checksFirst reports whether an attempt starts with the check whether an earlier one has had its effect.
func (f *InFlight) checksFirst(w *workflow.Work) bool {
	return f.Phase == transitions.Working && w.Checkable && f.earlier()
}

// Code is the code of an attempt.
type Code struct {
	Do    func() ([]byte, error)
	Check func() (result []byte, happened bool, err error) // called only where the work is Checkable
	Undo  func() error                                     // called only in the phase Undoing
}

// Try is the result of an attempt.
type Try struct {
	Result []byte
	Err    error // of [InFlight.Try]: none of the user's, whose methods may panic
	Cause  error // why its context was done, if it was
	Final  bool  // no attempt can mend the error: this one has done nothing, and none will
	None   bool  // this one has done nothing: it is final, or says so
	Check  bool  // the error is that of the check: the work was not tried
}

// Try runs the code of an attempt: first the check, if an earlier attempt may have had its effect. A panic is passed to panicked, which
// must not be nil.
func (f *InFlight) Try(w *workflow.Work, c Code, panicked func(value any, stack []byte)) (t Try) {
	defer func() {
		if v := recover(); v != nil {
			panicked(v, debug.Stack())
			t = Try{Err: errPanic}
		}
	}()
	switch checks := f.checksFirst(w); {
	case f.Phase == transitions.Undoing:
		t.Err = c.Undo()
	case checks:
		result, happened, err := c.Check()
		switch {
		case err != nil:
			t.Err, t.Check = settled("check whether it has happened: ", err), true // it says nothing about what was done before
			return t
		case happened:
			t.Result = result
		case f.Failures >= w.Retry.Attempts:
			t.Err = errNotDone
		default:
			t.Result, t.Err = c.Do()
		}
	default:
		t.Result, t.Err = c.Do()
	}
	if t.Err != nil {
		said := !errors.Is(t.Err, workflow.ErrResult)
		t.Final = said && (workflow.IsFinal(t.Err) || w.Retry.Final != nil && w.Retry.Final(t.Err))
		t.None = said && (t.Final || workflow.IsNotDone(t.Err))
		t.Err = settled("", t.Err)
	}
	return t
}

// settledError is the text of an error, and the sentinel among those that After tests.
type settledError struct {
	text string
	was  error
}

func (e *settledError) Error() string { return e.text }

func (e *settledError) Unwrap() error { return e.was }

// settled reads a user's error once, because its methods may panic.
func settled(about string, err error) error {
	e := &settledError{text: about + messageOf(err)}
	for _, which := range []error{errNotDone, workflow.ErrResult, workflow.ErrUnreadable, context.DeadlineExceeded} {
		if errors.Is(err, which) {
			e.was = which
			break
		}
	}
	return e
}

// After decides how a command continues after an attempt. A failed check is not a failure of the work: checks are counted in the request,
// and may fail as often as the work.
func (f *InFlight) After(w *workflow.Work, t Try) (v Verdict) {
	if t.Err == nil {
		return ended(Outcome{Result: t.Result})
	}
	if t.Cause == ErrTimeout && errors.Is(t.Err, context.DeadlineExceeded) {
		t.Err = fmt.Errorf("no result within %s: %w", w.Timeout, t.Err)
	}
	message, tried := messageOf(t.Err), f.Failures+1
	last, backoff := tried >= w.Retry.Attempts, tried
	if t.Check {
		asked, err := f.Asked()
		if err != nil {
			return Undecidable(err)
		}
		asked.Checks++
		tried = min(f.Failures, w.Retry.Attempts)
		last, backoff = asked.Checks >= w.Retry.Attempts, tried+asked.Checks
		defer func() {
			if v.Back != nil && v.Back.Failed {
				v.Back.Failed, v.Back.Request = false, asked.encode()
			}
		}()
	}
	cancelled, isCancelled := errors.AsType[*CancelledError](t.Cause)
	undo, unsaid := f.Phase == transitions.Undoing, errors.Is(t.Err, workflow.ErrResult)
	stopped := t.Cause == ErrStopping || t.Cause == ErrLapsed // by its node, and not for anything that it did
	switch {
	case t.Cause == ErrLost:
		return Verdict{}
	case errors.Is(t.Err, workflow.ErrUnreadable): // nothing was begun, and another node's build may be able to
		v = f.NotHere()
		v.Back.Failure = message
		return v
	case undo && (t.Final || last) && !stopped:
		return ask(transitions.StuckUndo, message)
	case isCancelled:
		return failedFor(workflow.FailureCancelled, cancelled.Error(), tried, !t.None || f.earlier())
	case errors.Is(t.Err, errNotDone):
		// The effect may still happen: a check reports the past only.
		return failedFor(workflow.FailureAbandoned, message, w.Retry.Attempts, true)
	case t.Final:
		return failedFor(workflow.FailureError, message, tried, f.earlier())
	case !undo && !t.None && w.AskOperator && (unsaid || !w.Checkable):
		// An answer may be lost with its connection, so no other error means that nothing has happened.
		return ask(transitions.StuckUnknown, message)
	case unsaid: // it would be so again, and would have happened again
		return ask(transitions.StuckUndecidable, message)
	case stopped:
		v = Later(0)
		v.Back.Unsure = !undo && !t.None
		return v
	case last && t.None && !f.earlier():
		return failedFor(workflow.FailureError, message, tried, false)
	case last && (undo || !w.Checkable || t.Check):
		if w.AskOperator && w.Checkable { // the check could not tell
			return ask(transitions.StuckUnknown, message)
		}
		return failedFor(workflow.FailureError, message, tried, true)
	}
	v = again(w.Retry.Ceiling(backoff), message)
	v.Back.Unsure, v.Back.None = !undo && !t.None, !undo && t.None
	return v
}

// AfterDue decides what becomes of a scheduled command after it was submitted.
func (f *InFlight) AfterDue(err error) Verdict {
	switch code := workflow.CodeOf(err); {
	case err == nil || code == workflow.LeaseLost:
		return Verdict{}
	case code == workflow.Paused || code == workflow.WorkflowNotFound || code == workflow.NotOnThisNode:
		return f.NotHere()
	case code == workflow.ShuttingDown:
		return Later(0)
	case IsTransient(code):
		return again(undecided.Ceiling(f.Failures+1), messageOf(err))
	case f.Failures+1 >= undecided.Attempts:
		return Undecidable(err)
	}
	return again(undecided.Ceiling(f.Failures+1), messageOf(err))
}

// IsTransient reports whether an error of the pipeline is unrelated to the command.
func IsTransient(code workflow.Code) bool { return code.Info().Retry && code != workflow.Internal }

// maxFailure bounds the message of a failure, in bytes.
const maxFailure = 1000

// messageOf returns the text of an error for storage and display, without the cause of an error of Pawl's.
func messageOf(err error) string {
	text := err.Error()
	if e, ok := err.(*workflow.Error); ok {
		text = string(e.Code) + ": " + e.Message
	}
	return shortened(text, maxFailure)
}
