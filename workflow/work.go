package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// Work is what a transition does outside of the database, with its types
// erased: what an engine works with. Its exported fields are for reading.
//
// Such a transition is two commits. The first accepts the command and brings the
// instance into the state Via. Then an attempt runs, outside of any transaction,
// and the second commit takes its outcome to one of the transition's targets, or
// to Failed.
type Work struct {
	Via         State           // where the instance is while the work is under way
	Failed      State           // where it goes when the work has failed for good; Stay: back
	FailedFrom  map[State]State // the same, by where it came from; nil: Failed says it
	KeepsFrom   bool            // what becomes of it depends on where it came from, so that this is kept with the command
	Timeout     time.Duration
	Retry       Retry
	Concurrency int      // attempts at once on one node; 0: as many as the node has workers
	AskOperator bool     // an attempt that ended unknown must not be repeated by itself
	Undoable    bool     // Undo is declared
	Checkable   bool     // Check is declared
	Undoes      []string // activities that a failure of this one undoes
	Settles     []string // activities that are no longer undone once this one has succeeded
	body        workBody
}

// Retry is how often and when failed work is tried again. After the n-th failure
// the next attempt waits a random time up to First·2ⁿ⁻¹, at most Max ("full
// jitter", https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
type Retry struct {
	Attempts int           // in all; 0 is 10, 1 is no retry
	First    time.Duration // 0 is 1 s
	Max      time.Duration // 0 is 5 min, or First where that is longer
	// Final says which errors no attempt can mend; see also [Final]. nil: none.
	Final func(error) bool
}

// Ceiling is the longest wait after so many failures.
func (r Retry) Ceiling(failures int) time.Duration {
	wait := r.First
	for range failures - 1 {
		if wait > r.Max/2 {
			return r.Max // before it overflows
		}
		wait *= 2
	}
	return min(wait, r.Max)
}

// Attempt is one try of an activity, as its function sees it.
type Attempt struct {
	// Key names the effect. It is the same on every attempt, so that a provider
	// that honours idempotency keys does it once. 40 hexadecimal digits.
	//
	// In a header Idempotency-Key or X-Idempotency-Key it also makes Go's own
	// http.Transport repeat the request by itself when the connection is lost, so that
	// one attempt may reach a provider twice. A request whose GetBody is nil, and whose
	// Body is not, is sent once.
	Key string
	// Number counts the claims of the command, from 1. It is the fencing token:
	// only the newest may complete.
	Number   int
	Tenant   string
	Instance uuid.UUID
	Actor    string // who sent the command
	report   func(progress []byte)
}

// NewAttempt is for those who run activities. report takes progress as JSON; nil
// drops it.
func NewAttempt(a Attempt, report func(progress []byte)) *Attempt {
	a.report = report
	return &a
}

// Report publishes progress to watchers of the command. The newest report replaces earlier ones; it is not waited for. A value without a
// JSON form is an error.
func (a *Attempt) Report(progress any) error {
	raw, err := json.Marshal(progress, jsonOut)
	if err != nil {
		return fmt.Errorf("encode progress: %w", err)
	}
	if a.report != nil {
		a.report(raw)
	}
	return nil
}

// workBody is the typed part of a Work.
type workBody interface {
	do(ctx context.Context, a *Attempt, data, payload []byte) ([]byte, error)
	undo(ctx context.Context, a *Attempt, data, payload, result []byte) error
	check(ctx context.Context, a *Attempt, data, payload []byte) (result []byte, happened bool, err error)
	done(c *Call, data, result []byte) ([]byte, error)
	fail(c *Call, data []byte, f Failure) ([]byte, error)
	fits(result []byte) error
	mistakes() []string
	resultMembers() map[string]string
}

// Do runs an attempt and returns its result as JSON. Its error is the user's
// own, or an *Error for a defect of the workflow. It does not recover panics.
func (w *Work) Do(ctx context.Context, a *Attempt, data, payload []byte) ([]byte, error) {
	return w.body.do(ctx, a, data, payload)
}

// Undo undoes the effect, where Undoable. result is nil when it is not known
// whether and how it happened. Its errors are as those of Do.
func (w *Work) Undo(ctx context.Context, a *Attempt, data, payload, result []byte) error {
	return w.body.undo(ctx, a, data, payload, result)
}

// Check asks whether an attempt that ended unknown has had its effect, and for
// its result, where Checkable. Its errors are as those of Do.
func (w *Work) Check(ctx context.Context, a *Attempt, data, payload []byte) (result []byte, happened bool, err error) {
	return w.body.check(ctx, a, data, payload)
}

// Fits refuses, as InvalidPayload, what is not a result of the activity: an operator
// who says what has happened may err.
func (w *Work) Fits(result []byte) error { return w.body.fits(result) }

// Done decides what a result makes of the instance, at a step with Work. It is
// pure, as Step.Run is, and its errors are the same.
func (s *Step) Done(f Facts, data, result []byte) (Outcome, error) {
	c := s.call(f, s.To)
	after, err := s.Work.body.done(c, data, result)
	s.back(c, f)
	return s.outcome(c, f, after, err)
}

// Fail decides what a failure makes of the instance, at a step with Work. It is
// pure. Its error is Internal, or NotOnThisNode as that of Run: the failure action cannot refuse.
func (s *Step) Fail(f Facts, data []byte, failure Failure) (Outcome, error) {
	c := s.call(f, []State{s.Work.failedTo(s.cameFrom(f))})
	after, err := s.Work.body.fail(c, data, failure)
	s.back(c, f)
	return s.outcome(c, f, after, err)
}
