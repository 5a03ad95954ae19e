package inflight

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func retries(r workflow.Retry) func(*activityOfText) { return func(a *activityOfText) { a.Retry(r) } }

func TestFailedAttemptsAreRetriedAndExhausted(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var calls atomic.Int64
	w := job(t, func(context.Context, *workflow.Attempt, string) (string, error) {
		return "", fmt.Errorf("failure %d", calls.Add(1))
	}, retries(workflow.Retry{Attempts: 3, First: time.Hour, Max: 2 * time.Hour}))
	r := due("a")
	insert(t, pool, r)
	clock := newStill() // else what is due at a random time could be due in a moment
	n := startNode(t, pool, w, clock.set)
	for i, ceiling := range []time.Duration{time.Hour, 2 * time.Hour} {
		got := becomes(t, pool, r.ref(), "it is given back", func(r row) bool {
			return r.Failures == i+1 && r.Status == transitions.FailedRetryable
		})
		wait := got.RunAt.Sub(clock.now())
		clock.skip(ceiling) // it is due then, at the latest
		assert.Truef(t, got.Failure == fmt.Sprintf("failure %d", i+1) && got.Attempt == i+1 && wait <= ceiling,
			"attempt %d is followed by another in %s: %s", got.Attempt, wait, got.Failure)
		n.Wake()
	}
	want := workflow.Failure{Kind: workflow.FailureError, Message: "failure 3", Attempts: 3, Unknown: true}
	assert.Equal(t, want, n.failure(t), "it failed as")
	n.atRest(t)
	s := n.Stats()
	assert.Truef(t, s.Retried == 2 && s.Failed == 1 && calls.Load() == 3, "counted %+v and %d calls", s, calls.Load())
}

func TestAnAttemptHasItsTime(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work, func(a *activityOfText) { a.Timeout(50 * time.Millisecond).Retry(workflow.Retry{Attempts: 1}) })
	n := startNode(t, pool, w)
	n.accept(t, w, "a")
	got := n.failure(t)
	assert.Truef(t, got.Message == "no result within 50ms: context deadline exceeded" && got.Unknown, "it failed as %+v", got)
	cause := await.Receive(t, "its context is done", g.cause)
	assert.Truef(t, cause == decide.ErrTimeout, "its context is done because %v", cause)
}

func TestAPanicIsAFailureOfItsAttempt(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, func(_ context.Context, a *workflow.Attempt, _ string) (string, error) {
		if a.Number == 1 {
			panic("a secret")
		}
		return "", nil
	}, retries(workflow.Retry{First: time.Millisecond}))
	n := startNode(t, pool, w)
	ref := n.accept(t, w, "a")
	got := becomes(t, pool, ref, "the second attempt succeeds", func(r row) bool { return r.Status == transitions.Succeeded })
	assert.Truef(t, got.Failures == 1 && got.Failure == "the activity panicked; the log says where",
		"%d failures: %s", got.Failures, got.Failure)
	if n.log.Count("an activity panicked tenant=acme scope=job:1 key=a") != 1 || n.log.Count("panic=a secret stack=goroutine") != 1 {
		t.Errorf("logged %q", n.log.List())
	}
}

func TestAGoroutineThatEndsItselfIsALostWorker(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, func(_ context.Context, a *workflow.Attempt, _ string) (string, error) {
		if a.Number == 1 {
			runtime.Goexit()
		}
		return "", nil
	})
	n := startNode(t, pool, w)
	ref := n.accept(t, w, "a")
	n.atRest(t)
	lapse(t, n, ref)
	becomes(t, pool, ref, "the second attempt succeeds", func(r row) bool { return r.Status == transitions.Succeeded && r.Attempt == 2 })
	n.atRest(t) // no worker is missing
}

// The kernel's tables have all cases; these are those that differ in what is called.
func TestAfterALostWorkerTheCheckTells(t *testing.T) {
	t.Parallel()
	lost := leased("dead", -time.Second)
	for name, c := range map[string]struct {
		answer *text
		err    error
		row    row
		calls  string
		want   string
	}{
		"it has happened": {&text{"found"}, nil, due("a", lost), "check", `{"text":"found"}`},
		"it has not":      {nil, nil, due("a", lost), "check run", `{"text":"ran"}`},
		"it has not, and there are none left": {nil, nil, due("a", lost, func(r *row) { r.Failures = 9 }), "check",
			string(workflow.FailureAbandoned)},
		"it was never tried": {nil, errors.New("no answer"), due("a", func(r *row) { r.Attempt = 3 }), "run", `{"text":"ran"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			insert(t, pool, c.row)
			var calls []string
			n := startNode(t, pool, job(t, func(context.Context, *workflow.Attempt, string) (string, error) {
				calls = append(calls, "run")
				return "ran", nil
			}, func(a *activityOfText) {
				a.Check(func(_ context.Context, _ *workflow.Attempt, d, p text) (*text, error) {
					calls = append(calls, "check")
					if d.Text != "data" || p.Text != "a" {
						return nil, fmt.Errorf("the check got %+v and %+v", d, p)
					}
					return c.answer, c.err
				})
			}))
			eventually(t, "it has ended", func() bool { return len(n.ended()) == 1 })
			o := n.ended()[0].Resumed.Outcome
			got := string(o.Result)
			if o.Failure != nil {
				got = string(o.Failure.Kind)
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.calls, strings.Join(calls, " "))
		})
	}
}

func TestAtMostOnceIsStuck(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, func(context.Context, *workflow.Attempt, string) (string, error) {
		t.Error("it ran again")
		return "", nil
	}, func(a *activityOfText) { a.AskOperator() })
	r := due("a", leased("dead", -time.Second))
	insert(t, pool, r)
	n := startNode(t, pool, w)
	got := becomes(t, pool, r.ref(), "it is stuck", func(r row) bool { return r.Stuck != "" })
	assert.Truef(t, got.Status == transitions.FailedRetryable && got.Stuck == "unknown_outcome" && got.RunAt.IsZero() && got.Failures == 1,
		"it is %+v", got.Record)
	s := n.Stats()
	assert.Equalf(t, int64(1), s.Stuck, "counted %+v", s)
}

func TestAnUndoIsRetriedAndThenWaitsForAPerson(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var mu sync.Mutex
	var calls []string
	w := job(t, atOnce, func(a *activityOfText) {
		a.Retry(workflow.Retry{Attempts: 2, First: time.Millisecond}).Undo(func(_ context.Context, a *workflow.Attempt, d, p text,
			result *text) error {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, fmt.Sprint(a.Key, d.Text, p.Text, result))
			if p.Text == "good" {
				return nil
			}
			return errors.New("no refund")
		})
	})
	undo := func(key, request string) row {
		return due(key, func(r *row) { r.Phase, r.Request = transitions.Undoing, []byte(request) })
	}
	good := undo("good", `{"payload":{"text":"good"},"effect":"e1","result":{"text":"r"}}`)
	bad := undo("bad", `{"payload":{"text":"bad"},"effect":"e2"}`)
	insert(t, pool, good)
	n := startNode(t, pool, w)
	becomes(t, pool, good.ref(), "it is undone", func(r row) bool { return r.Status == transitions.Succeeded })
	insert(t, pool, bad)
	got := becomes(t, pool, bad.ref(), "it is stuck", func(r row) bool { return r.Stuck != "" })
	assert.Truef(t, got.Stuck == "undo_failed" && got.Failures == 2 && got.Failure == "no refund", "it is %+v", got.Record)
	mu.Lock()
	defer mu.Unlock()
	want := []string{"e1datagood&{r}", "e2databad<nil>", "e2databad<nil>"}
	assert.Equalf(t, fmt.Sprint(want), fmt.Sprint(calls), "called %q", calls)
	n.atRest(t)
	s := n.Stats()
	assert.Truef(t, s.Undone == 1 && s.Retried == 1 && s.Stuck == 1, "counted %+v", s)
}

// The pipeline cannot commit for a while: the outcome is known here alone, so
// the lease is held, beyond the attempt's own time.
func TestAnOutcomeIsKeptUntilItCanBeCommitted(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var ran, tries atomic.Int64
	w := job(t, func(context.Context, *workflow.Attempt, string) (string, error) {
		return fmt.Sprint("run ", ran.Add(1)), nil
	}, func(a *activityOfText) { a.Timeout(100 * time.Millisecond) })
	n := startNode(t, pool, w, lease(600*time.Millisecond), workers(1)) // it has nobody to take over from itself
	n.set(func(n *node) {
		until := time.Now().Add(200 * time.Millisecond) // when the attempt's own time is over
		n.refuse = func(*decide.Prepared) error {
			if tries.Add(1) < 3 || n.Stats().Heartbeats < 2 || time.Now().Before(until) {
				return workflow.Errorf(workflow.Unavailable, "no database")
			}
			return nil
		}
	})
	ref := n.accept(t, w, "a")
	got := becomes(t, pool, ref, "it is done", func(r row) bool { return r.Status == transitions.Succeeded })
	assert.Truef(t, got.Attempt == 1 && ran.Load() == 1, "attempt %d, %d runs, %d tries", got.Attempt, ran.Load(), tries.Load())
	s := n.Stats()
	assert.Equalf(t, int64(0), s.Lost, "counted %+v", s)
}

func TestUndecidableOutcomeIsStuck(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	n := startNode(t, pool, job(t, atOnce))
	n.set(func(n *node) {
		n.refuse = func(*decide.Prepared) error {
			return &workflow.Error{Code: workflow.Internal, Message: "the workflow's code failed", Cause: errors.New("a secret")}
		}
	})
	r := due("a")
	insert(t, pool, r)
	got := becomes(t, pool, r.ref(), "it is stuck", func(r row) bool { return r.Stuck != "" })
	assert.Truef(t, got.Stuck == "undecidable" && got.Failure == "internal_error: the workflow's code failed", "it is %+v", got.Record)
	assert.Equalf(t, 1, n.log.Count("a secret"), "logged %q", n.log.List())
}
