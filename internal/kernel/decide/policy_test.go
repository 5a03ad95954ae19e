package decide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// describe says in a line what becomes of a command.
func describe(v Verdict) string {
	switch {
	case v.Outcome != nil && v.Outcome.Failure != nil:
		f := v.Outcome.Failure
		text := fmt.Sprintf("%s after %d", f.Kind, f.Attempts)
		if f.Unknown {
			text += ", unknown"
		}
		return text
	case v.Outcome != nil:
		return "done " + string(v.Outcome.Result)
	case v.Back == nil:
		return "nothing"
	}
	text := string(v.Back.Status)
	if v.Back.Stuck != "" {
		text += " " + v.Back.Stuck
	} else {
		text += fmt.Sprintf(" in %s..%s", v.Back.Least, v.Back.Most)
	}
	if v.Back.Failed {
		text += ", counted"
	}
	if v.Back.Unsure {
		text += ", unsure"
	}
	return text
}

// policies are what an activity may declare.
var policies = map[string]*workflow.Work{
	"":      {Retry: workflow.Retry{Attempts: 3, First: time.Second, Max: time.Minute}},
	"once":  {Retry: workflow.Retry{Attempts: 1, First: time.Second, Max: time.Minute}},
	"asks":  {Retry: workflow.Retry{Attempts: 3, First: time.Second, Max: time.Minute}, AskOperator: true},
	"check": {Retry: workflow.Retry{Attempts: 3, First: time.Second, Max: time.Minute}, Checkable: true},
	"both":  {Retry: workflow.Retry{Attempts: 3, First: time.Second, Max: time.Minute}, Checkable: true, AskOperator: true},
}

func TestBeforeAnAttempt(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy string
		flight InFlight
		want   string
	}{
		{"the first", "", InFlight{Attempt: 1}, "go on"},
		{"a retry", "", InFlight{Attempt: 3, Failures: 2}, "go on"},
		{"after a lost worker", "", InFlight{Attempt: 2, Failures: 1, TakenFrom: "n"}, "go on"},
		{"checked too often", "check", InFlight{Attempt: 7, Failures: 6, TakenFrom: "n"}, "abandoned after 3, unknown"},
		{"after too many", "", InFlight{Attempt: 4, Failures: 3, TakenFrom: "n"}, "abandoned after 3, unknown"},
		{"without a retry", "once", InFlight{Attempt: 2, Failures: 1, TakenFrom: "n"}, "abandoned after 1, unknown"},
		{"not to be repeated", "asks", InFlight{Attempt: 2, Failures: 1, TakenFrom: "n"}, "failed_retryable unknown_outcome"},
		{"not to be repeated, though another node had it meanwhile", "asks", InFlight{Attempt: 3, Failures: 1, Unsure: true},
			"failed_retryable unknown_outcome"},
		{"not to be repeated, but an operator had it tried again", "asks", InFlight{Attempt: 3, Request: []byte(`{"tried":true}`)}, "go on"},
		{"not to be repeated, but never begun", "asks", InFlight{Attempt: 3}, "go on"},
		{"not to be repeated, the last", "asks", InFlight{Attempt: 4, Failures: 3, TakenFrom: "n"}, "failed_retryable unknown_outcome"},
		{"to be checked", "check", InFlight{Attempt: 2, Failures: 1, TakenFrom: "n"}, "go on"},
		{"to be checked though there are none left", "check", InFlight{Attempt: 4, Failures: 3, TakenFrom: "n"}, "go on"},
		{"to be checked first of all", "both", InFlight{Attempt: 2, Failures: 1, TakenFrom: "n"}, "go on"},
		{"cancelled before the first", "", InFlight{Attempt: 1, CancelledBy: "bob"}, "cancelled after 0"},
		{"cancelled between two", "check", InFlight{Attempt: 3, Failures: 2, Unsure: true, CancelledBy: "bob"}, "cancelled after 2, unknown"},
		{"cancelled between two, of which the first has done nothing", "check",
			InFlight{Attempt: 3, Failures: 2, Nothing: true, CancelledBy: "bob"},
			"cancelled after 2"},
		{"not to be repeated, but nothing was done", "asks", InFlight{Attempt: 2, Failures: 1}, "go on"},
		{"what another node has found it to have come to", "asks",
			InFlight{Attempt: 3, TakenFrom: "n", CancelledBy: "bob", Request: []byte(`{"outcome":{"result":1}}`)}, "done 1"},
		{"a failure that another node has found", "",
			InFlight{Attempt: 2, Request: []byte(`{"outcome":{"failure":{"kind":"failed","message":"no","attempts":1}}}`)},
			"failed after 1"},
		{"an undo", "", InFlight{Phase: transitions.Undoing, Attempt: 2, Failures: 1, TakenFrom: "n"}, "go on"},
		{"an undo that cannot be cancelled", "", InFlight{Phase: transitions.Undoing, Attempt: 1, CancelledBy: "bob"}, "go on"},
		{"an undo after too many", "", InFlight{Phase: transitions.Undoing, Attempt: 4, Failures: 3, TakenFrom: "n"},
			"failed_retryable undo_failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.flight.Phase == "" {
				c.flight.Phase = transitions.Working
			}
			v, decided := c.flight.Before(policies[c.policy], time.Hour, time.Time{})
			got := "go on"
			if decided {
				got = describe(v)
			}
			assert.Equal(t, c.want, got, "it comes to")
		})
	}
}

func TestAfterAnAttempt(t *testing.T) {
	broken := errors.New("broken")
	work := &workflow.Work{Retry: workflow.Retry{Attempts: 3}, Checkable: true}
	panicked := (&InFlight{Phase: transitions.Working, Attempt: 1}).Try(work,
		Code{Do: func() ([]byte, error) { panic("no") }}, func(any, []byte) {})
	notDone := (&InFlight{Phase: transitions.Working, Attempt: 4, Failures: 3}).Try(work,
		Code{Check: func() ([]byte, bool, error) { return nil, false, nil }}, nil)
	failedCheck := Try{Err: broken, Check: true}
	first, last := InFlight{Attempt: 1}, InFlight{Attempt: 3, Failures: 2}
	undo, lastUndo := InFlight{Phase: transitions.Undoing, Attempt: 1}, InFlight{Phase: transitions.Undoing, Attempt: 3, Failures: 2}
	bob := &CancelledError{By: "bob"}
	unsaid := fmt.Errorf("encode: %w", workflow.ErrResult)
	unread := fmt.Errorf("decode: %w", workflow.ErrUnreadable)
	for _, c := range []struct {
		name   string
		policy string
		flight InFlight
		try    Try
		want   string
	}{
		{"success", "", first, Try{Result: []byte("1")}, "done 1"},
		{"success though it was cancelled", "", first, Try{Result: []byte("1"), Cause: bob}, "done 1"},
		{"success while the node stops", "", first, Try{Result: []byte("1"), Cause: ErrStopping}, "done 1"},
		{"an error", "", first, Try{Err: broken}, "failed_retryable in 0s..1s, counted, unsure"},
		{"a second error", "", InFlight{Attempt: 2, Failures: 1}, Try{Err: broken}, "failed_retryable in 0s..2s, counted, unsure"},
		{"the last error", "", last, Try{Err: broken}, "failed after 3, unknown"},
		{"the only error", "once", first, Try{Err: broken}, "failed after 1, unknown"},
		{"a final error", "", first, Try{Err: workflow.Final(broken), Final: true, None: true}, "failed after 1"},
		{"a final error after a failure", "", InFlight{Attempt: 2, Failures: 1, Unsure: true}, Try{Err: broken, Final: true, None: true},
			"failed after 2, unknown"},
		{"a final error after a lost worker", "", InFlight{Attempt: 2, Failures: 1, TakenFrom: "n"}, Try{Err: broken, Final: true, None: true},
			"failed after 2, unknown"},
		{"a final error after an attempt that was stopped", "", InFlight{Attempt: 2, Unsure: true}, Try{Err: broken, Final: true, None: true},
			"failed after 1, unknown"},
		{"a final error after an operator had it tried again", "", InFlight{Attempt: 2, Request: []byte(`{"tried":true}`)},
			Try{Err: broken, Final: true, None: true}, "failed after 1, unknown"},
		{"cancelled at a final error after an operator had it tried again", "", InFlight{Attempt: 2, Request: []byte(`{"tried":true}`)},
			Try{Err: broken, Final: true, None: true, Cause: bob}, "cancelled after 1, unknown"},
		{"a final error of the first attempt, though not of the first claim", "", InFlight{Attempt: 2}, Try{Err: broken, Final: true, None: true},
			"failed after 1"},
		{"a result that cannot be encoded", "", first, Try{Err: unsaid}, "failed_retryable undecidable, counted, unsure"},
		{"a result that cannot be encoded, and a check", "check", first, Try{Err: unsaid}, "failed_retryable undecidable, counted, unsure"},
		{"a result that cannot be encoded, while the node stops", "", first, Try{Err: unsaid, Cause: ErrStopping},
			"failed_retryable undecidable, counted, unsure"},
		{"a result that cannot be encoded, of one that was cancelled", "", first, Try{Err: unsaid, Cause: bob}, "cancelled after 1, unknown"},
		{"data that this build cannot read", "", first, Try{Err: unread}, "pending in 500ms..1s"},
		{"data that this build cannot read, the last", "asks", last, Try{Err: unread}, "pending in 2s..4s"},
		{"data that this build cannot read, of one that was cancelled", "", first, Try{Err: unread, Cause: bob}, "pending in 500ms..1s"},
		{"data that this build cannot read, of an undo", "", lastUndo, Try{Err: unread, Final: true}, "pending in 2s..4s"},
		{"a timeout", "", first, Try{Err: context.DeadlineExceeded, Cause: ErrTimeout}, "failed_retryable in 0s..1s, counted, unsure"},
		{"cancelled", "", first, Try{Err: context.Canceled, Cause: bob}, "cancelled after 1, unknown"},
		{"cancelled at the last error", "", last, Try{Err: broken, Cause: bob}, "cancelled after 3, unknown"},
		{"cancelled at a final error", "", first, Try{Err: broken, Final: true, None: true, Cause: bob}, "cancelled after 1"},
		{"cancelled at a final error after a failure", "", InFlight{Attempt: 2, Failures: 1, Unsure: true},
			Try{Err: broken, Final: true, None: true, Cause: bob},
			"cancelled after 2, unknown"},
		{"the node stops", "", last, Try{Err: context.Canceled, Cause: ErrStopping}, "pending in 0s..0s, unsure"},
		{"the lease has run out", "", last, Try{Err: context.Canceled, Cause: ErrLapsed}, "pending in 0s..0s, unsure"},
		{"a final error when the lease has run out", "", first, Try{Err: broken, Final: true, None: true, Cause: ErrLapsed}, "failed after 1"},
		{"the lease is lost", "", last, Try{Err: broken, Cause: ErrLost}, "nothing"},
		{"a panic", "", first, panicked, "failed_retryable in 0s..1s, counted, unsure"},
		{"checked in vain", "check", InFlight{Attempt: 4, Failures: 3}, notDone, "abandoned after 3, unknown"},

		{"asks: an error", "asks", first, Try{Err: broken}, "failed_retryable unknown_outcome, counted, unsure"},
		{"asks: a lost connection", "asks", first, Try{Err: fmt.Errorf("post: %w", io.EOF)}, "failed_retryable unknown_outcome, counted, unsure"},
		{"asks: the last error", "asks", last, Try{Err: broken}, "failed_retryable unknown_outcome, counted, unsure"},
		{"asks: a result that cannot be encoded", "asks", first, Try{Err: unsaid}, "failed_retryable unknown_outcome, counted, unsure"},
		{"asks: a final error", "asks", first, Try{Err: broken, Final: true, None: true, Cause: ErrTimeout}, "failed after 1"},
		{"asks: a timeout", "asks", first, Try{Err: broken, Cause: ErrTimeout}, "failed_retryable unknown_outcome, counted, unsure"},
		{"asks: a panic", "asks", first, panicked, "failed_retryable unknown_outcome, counted, unsure"},
		{"asks: the node stops", "asks", first, Try{Err: context.Canceled, Cause: ErrStopping},
			"failed_retryable unknown_outcome, counted, unsure"},
		{"asks: the lease has run out", "asks", first, Try{Err: context.Canceled, Cause: ErrLapsed},
			"failed_retryable unknown_outcome, counted, unsure"},
		{"asks: cancelled", "asks", first, Try{Err: context.Canceled, Cause: bob}, "cancelled after 1, unknown"},
		{"asks, but can be checked: a timeout", "both", first, Try{Err: broken, Cause: ErrTimeout},
			"failed_retryable in 0s..1s, counted, unsure"},
		{"asks, but can be checked: an error", "both", first, Try{Err: io.EOF}, "failed_retryable in 0s..1s, counted, unsure"},
		{"asks, but can be checked: a result that cannot be encoded", "both", first, Try{Err: unsaid},
			"failed_retryable unknown_outcome, counted, unsure"},
		{"asks, but can be checked: the node stops", "both", first, Try{Err: broken, Cause: ErrStopping}, "pending in 0s..0s, unsure"},

		{"nothing was done", "", first, Try{Err: broken, None: true}, "failed_retryable in 0s..1s, counted"},
		{"nothing was done, the last", "", InFlight{Attempt: 3, Failures: 2, Nothing: true}, Try{Err: broken, None: true}, "failed after 3"},
		{"nothing was done, the last, after a failure", "", InFlight{Attempt: 3, Failures: 2, Unsure: true}, Try{Err: broken, None: true},
			"failed after 3, unknown"},
		{"nothing was done, the last, after a lost worker", "", InFlight{Attempt: 3, Failures: 2, TakenFrom: "n"}, Try{Err: broken, None: true},
			"failed after 3, unknown"},
		{"nothing was done, the last that could be checked", "check", InFlight{Attempt: 3, Failures: 2, Nothing: true},
			Try{Err: broken, None: true}, "failed after 3"},
		{"nothing was done by the last, and something is to be checked", "check", InFlight{Attempt: 3, Failures: 2, Unsure: true},
			Try{Err: broken, None: true}, "failed_retryable in 0s..4s, counted"},
		{"nothing was done, cancelled", "", first, Try{Err: broken, None: true, Cause: bob}, "cancelled after 1"},
		{"nothing was done, the node stops", "", first, Try{Err: broken, None: true, Cause: ErrStopping}, "pending in 0s..0s"},
		{"asks: nothing was done", "asks", first, Try{Err: broken, None: true}, "failed_retryable in 0s..1s, counted"},
		{"asks: nothing was done, a timeout", "asks", first, Try{Err: broken, None: true, Cause: ErrTimeout},
			"failed_retryable in 0s..1s, counted"},
		{"nothing was done, the last after one of which nobody says it", "", last, Try{Err: broken, None: true}, "failed after 3, unknown"},
		{"asks: nothing was done, the last", "asks", InFlight{Attempt: 3, Failures: 2, Nothing: true}, Try{Err: broken, None: true},
			"failed after 3"},
		{"asks: nothing was done, after an operator had it tried again", "asks",
			InFlight{Attempt: 3, Failures: 2, Nothing: true, Request: []byte(`{"tried":true}`)}, Try{Err: broken, None: true},
			"failed after 3, unknown"},
		{"asks: nothing was done, the node stops", "asks", first, Try{Err: broken, None: true, Cause: ErrStopping}, "pending in 0s..0s"},
		{"asks, but can be checked: nothing was done, the last", "both", InFlight{Attempt: 3, Failures: 2, Nothing: true},
			Try{Err: broken, None: true}, "failed after 3"},
		{"asks, but can be checked: nothing was done by the last", "both", InFlight{Attempt: 3, Failures: 2, Unsure: true},
			Try{Err: broken, None: true}, "failed_retryable in 0s..4s, counted"},

		{"the first failed check", "check", InFlight{Attempt: 2, Failures: 1, Unsure: true}, failedCheck, "failed_retryable in 0s..2s, unsure"},
		{"the last failed check", "check", InFlight{Attempt: 4, Failures: 1, Unsure: true, Request: []byte(`{"checks":2}`)}, failedCheck,
			"failed after 1, unknown"},
		{"asks: the last failed check", "both", InFlight{Attempt: 4, Failures: 3, Unsure: true, Request: []byte(`{"checks":2}`)}, failedCheck,
			"failed_retryable unknown_outcome, unsure"},
		{"a failed check while the node stops", "check", InFlight{Attempt: 2, Failures: 1, Unsure: true},
			Try{Err: broken, Check: true, Cause: ErrStopping}, "pending in 0s..0s, unsure"},
		{"cancelled during a check", "check", InFlight{Attempt: 2, Failures: 1, Unsure: true}, Try{Err: broken, Check: true, Cause: bob},
			"cancelled after 1, unknown"},

		{"undo: success", "", undo, Try{}, "done "},
		{"undo: an error", "asks", undo, Try{Err: context.DeadlineExceeded}, "failed_retryable in 0s..1s, counted"},
		{"undo: the last error", "", lastUndo, Try{Err: broken}, "failed_retryable undo_failed, counted"},
		{"undo: a final error", "", undo, Try{Err: broken, Final: true, None: true}, "failed_retryable undo_failed, counted"},
		{"undo: the node stops", "", lastUndo, Try{Err: broken, Cause: ErrStopping}, "pending in 0s..0s"},
		{"undo: the lease has run out", "", lastUndo, Try{Err: broken, Cause: ErrLapsed}, "pending in 0s..0s"},
		{"undo: the lease is lost", "", lastUndo, Try{Err: broken, Cause: ErrLost}, "nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.flight.Phase == "" {
				c.flight.Phase = transitions.Working
			}
			if c.flight.Request == nil {
				c.flight.Request = []byte("{}")
			}
			assert.Equal(t, c.want, describe(c.flight.After(policies[c.policy], c.try)), "it comes to")
		})
	}
}

func TestAfterAScheduledCommand(t *testing.T) {
	failed := func(code workflow.Code) error { return workflow.Errorf(code, "no") }
	for _, c := range []struct {
		name              string
		attempt, failures int
		err               error
		want              string
	}{
		{"decided", 1, 0, nil, "nothing"},
		{"taken over by another", 1, 0, failed(workflow.LeaseLost), "nothing"},
		{"paused", 1, 0, failed(workflow.Paused), "pending in 500ms..1s"},
		{"paused for long", 50, 0, failed(workflow.Paused), "pending in 15s..30s"},
		{"unknown here", 3, 0, failed(workflow.WorkflowNotFound), "pending in 2s..4s"},
		{"the node stops", 1, 0, failed(workflow.ShuttingDown), "pending in 0s..0s"},
		{"no database", 1, 0, failed(workflow.Unavailable), "failed_retryable in 0s..1s, counted"},
		{"no database for long", 99, 98, failed(workflow.Unavailable), "failed_retryable in 0s..1m0s, counted"},
		{"full", 9, 8, failed(workflow.Overloaded), "failed_retryable in 0s..1m0s, counted"},
		{"a defect", 1, 0, failed(workflow.Internal), "failed_retryable in 0s..1s, counted"},
		{"a defect that stays", 5, 4, failed(workflow.Internal), "failed_retryable undecidable, counted, unsure"},
		{"a role", 5, 4, failed(workflow.RoleRequired), "failed_retryable undecidable, counted, unsure"},
		{"no transition of that name", 5, 4, failed(workflow.TransitionNotFound), "failed_retryable undecidable, counted, unsure"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, describe((&InFlight{Attempt: c.attempt, Failures: c.failures}).AfterDue(c.err)), "it comes to")
		})
	}
}

// Whatever a command has been through, it ends or it is due or an operator has it, and the numbers make sense.
func FuzzVerdicts(f *testing.F) {
	f.Add(uint8(0), uint8(1), uint8(0), uint8(0), uint8(0))
	f.Add(uint8(2), uint8(4), uint8(3), uint8(3), uint8(7))
	f.Fuzz(func(t *testing.T, policy, attempt, failures, cause, bits uint8) {
		w := []*workflow.Work{policies[""], policies["once"], policies["asks"], policies["check"], policies["both"]}[policy%5]
		in := InFlight{Phase: transitions.Working, Attempt: 1 + int(attempt), Failures: int(failures)}
		if bits&1 != 0 {
			in.Phase = transitions.Undoing
		}
		if bits&2 != 0 {
			in.TakenFrom = "n"
		}
		in.Unsure, in.Nothing = bits&16 != 0, bits&128 != 0
		if bits&32 != 0 {
			in.RunAt = time.Unix(int64(failures), 0)
		}
		v, decided := in.Before(w, time.Minute, time.Unix(int64(attempt), 0))
		if !decided {
			tried := Try{Cause: []error{nil, ErrStopping, ErrTimeout, &CancelledError{By: "bob"}}[cause%4], Final: bits&4 != 0,
				None: bits&(4|64) != 0, Err: errors.New("no")}
			if bits&8 != 0 {
				tried = Try{Result: []byte("1")}
			}
			v = in.After(w, tried)
		}
		switch {
		case (v.Outcome == nil) == (v.Back == nil):
			t.Fatalf("it comes to both or neither: %s", describe(v))
		case v.Outcome != nil && v.Outcome.Failure != nil:
			n := v.Outcome.Failure.Attempts
			assert.Falsef(t, n != in.Attempt && n != in.Attempt-1, "%d attempts were begun: %s", in.Attempt, describe(v))
			assert.NotEqualf(t, transitions.Undoing, in.Phase, "an undo gave up by itself: %s", describe(v))
		case v.Back != nil:
			assert.Truef(t, v.Back.Least <= v.Back.Most && v.Back.Most <= w.Retry.Max && v.Back.Most >= 0,
				"it waits %s to %s", v.Back.Least, v.Back.Most)
		}
	})
}
