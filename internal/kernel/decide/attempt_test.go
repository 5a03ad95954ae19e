package decide

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// tryOf is what an attempt comes to whose check and work do as they are told.
func tryOf(f *InFlight, w *workflow.Work, happened bool, checked, worked error) Try {
	return f.Try(w, Code{
		Check: func() ([]byte, bool, error) { return []byte(`{}`), happened, checked },
		Do:    func() ([]byte, error) { return []byte(`{}`), worked },
	}, func(any, []byte) {})
}

func checkable(attempts int) *workflow.Work {
	return &workflow.Work{Checkable: true, Undoable: true, Retry: workflow.Retry{Attempts: attempts, First: 1, Max: 1}}
}

func TestCheck_AfterLastAttempt(t *testing.T) {
	w := checkable(3)
	boom := errors.New("the line went dead")
	last := &InFlight{Phase: transitions.Working, Attempt: 3, Failures: 2}
	v := last.After(w, tryOf(last, w, false, nil, boom))
	require.Truef(t, v.Back != nil && v.Back.Stuck == "" && v.Back.Failed, "the last attempt came to %+v", v)
	asks := &InFlight{Phase: transitions.Working, Attempt: 4, Failures: 3}
	if v, decided := asks.Before(w, time.Hour, time.Time{}); decided {
		t.Fatalf("decided without asking: %+v", v)
	}
	if v := asks.After(w, tryOf(asks, w, true, nil, boom)); v.Outcome == nil || v.Outcome.Failure != nil {
		t.Errorf("it had happened, and came to %+v", v)
	}
	v = asks.After(w, tryOf(asks, w, false, nil, nil))
	assert.Truef(t, v.Outcome != nil && v.Outcome.Failure != nil && v.Outcome.Failure.Kind == workflow.FailureAbandoned &&
		v.Outcome.Failure.Unknown, "it had not happened yet, and came to %+v", v)
}

func TestAskingWhetherItHasHappenedEndsToo(t *testing.T) {
	w := checkable(3)
	dead := errors.New("nobody answers")
	f := &InFlight{Phase: transitions.Working, Attempt: 4, Failures: 3, Request: []byte("{}")}
	for n := 0; ; n++ {
		if v, decided := f.Before(w, time.Hour, time.Time{}); decided {
			t.Fatalf("after %d: %+v", n, v)
		}
		v := f.After(w, tryOf(f, w, false, dead, nil))
		if v.Outcome != nil {
			assert.Truef(t, n == 2 && v.Outcome.Failure != nil && v.Outcome.Failure.Unknown, "after %d: %+v", n, v.Outcome)
			break
		}
		require.Falsef(t, v.Back.Failed, "a failed check counts as a failure of the work: %+v", v.Back)
		f.Attempt, f.Request = f.Attempt+1, v.Back.Request
	}
	lost := &InFlight{Phase: transitions.Working, Attempt: 7, Failures: 6, TakenFrom: "a node that it kills"}
	v, decided := lost.Before(w, time.Hour, time.Time{})
	assert.Truef(t, decided && v.Outcome.Failure.Kind == workflow.FailureAbandoned && v.Outcome.Failure.Unknown,
		"a check that kills its node goes on: %+v", v)
}

// typedNil is what a function returns as its error that declares the pointer and never sets it.
type typedNil struct{ text string }

func (e *typedNil) Error() string { return e.text }

// moody is an error that changes its mind: all that it is asked must be asked where a panic is caught.
type moody struct{ panics bool }

func (e *moody) say() string {
	if e.panics {
		panic("asked too late")
	}
	return "moody"
}
func (e *moody) Error() string   { return e.say() }
func (e *moody) Is(error) bool   { return e.say() == "" }
func (e *moody) As(any) bool     { return e.say() == "" }
func (e *moody) Timeout() bool   { return e.say() == "" }
func (e *moody) Unwrap() []error { e.say(); return nil }

func TestAttempt_PanickingError(t *testing.T) {
	w := &workflow.Work{Retry: workflow.Retry{Attempts: 3, First: 1, Max: 1}}
	f := &InFlight{Phase: transitions.Working, Attempt: 1}
	caught := 0
	try := f.Try(w, Code{Do: func() ([]byte, error) { var e *typedNil; return nil, e }}, func(any, []byte) { caught++ })
	v := f.After(w, try)
	assert.Truef(t, caught == 1 && v.Back != nil && v.Back.Failure == "the activity panicked; the log says where",
		"%d panics were caught, and it comes to %+v", caught, v)
}

func TestAfterAnAttemptNoCodeOfTheUserIsCalled(t *testing.T) {
	for name, f := range map[string]*InFlight{
		"work": {Phase: transitions.Working, Attempt: 1}, "check": {Phase: transitions.Working, Attempt: 2, Failures: 1},
		"undo": {Phase: transitions.Undoing, Attempt: 1},
	} {
		for policy, w := range policies {
			err := &moody{}
			try := f.Try(w, Code{
				Do:    func() ([]byte, error) { return nil, err },
				Check: func() ([]byte, bool, error) { return nil, false, err },
				Undo:  func() error { return err },
			}, func(v any, _ []byte) { t.Errorf("it panicked: %v", v) })
			err.panics = true
			for _, cause := range []error{nil, ErrTimeout, ErrStopping, &CancelledError{By: "bob"}} {
				try.Cause = cause
				v := f.After(w, try)
				assert.Falsef(t, v.Outcome == nil && v.Back == nil, "%s, %q: it comes to nothing", name, policy)
			}
		}
	}
}

// A node leaves commands that it can claim and not execute, for example of an unknown version, to others with a growing delay.
func TestNotOnThisNode_Backoff(t *testing.T) {
	t.Parallel()
	var before time.Duration
	for attempt := range 4 {
		v := (&InFlight{Attempt: attempt + 1}).NotHere()
		if v.Back == nil || v.Back.Failed || v.Back.Most <= before || v.Back.Least == 0 {
			t.Errorf("attempt %d: %+v", attempt+1, v.Back)
			continue
		}
		before = v.Back.Most
	}
}
