package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A node accepts, and none works; the clock moves past the horizons; then one
// does.
func TestWhatNobodyTookInTimeIsGivenUpAndALatePollerSeesIt(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	var posts atomic.Int64
	w := letters(1, hourly, func(context.Context, words) error {
		posts.Add(1)
		return nil
	})
	accepts := newEngine(t, pool, with(w), clock.set, func(c *engine.Config) { c.InFlight.Workers = -1 })
	begun := clock.Now()
	ids := map[string]transitions.Receipt{}
	for _, key := range []string{"late", "longer", "paused", "cancelled", "timed"} {
		ids[key] = submit(t, accepts, written("w "+key, "x"))
	}
	for _, key := range []string{"late", "longer", "paused", "cancelled"} {
		c := posted(ids[key].Instance, key)
		if key == "longer" {
			c.Replay = 100 * time.Hour
		}
		if r := submit(t, accepts, c); !r.InFlight() || r.Record.Attempt != 0 {
			t.Fatalf("%s: %+v", key, r)
		}
	}
	creation := written("scheduled", "x")
	creation.NotBefore = begun.Add(time.Hour)
	submit(t, accepts, creation)
	if _, err := accepts.Admin().Operate(t.Context(), transitions.Command{Key: "op", Instance: ids["paused"].Instance},
		transitions.Operation{Action: transitions.Pause}); err != nil {
		t.Fatal(err)
	}
	if _, err := accepts.Cancel(t.Context(), transitions.Ref{Scope: "s", Key: "cancelled"}, "ann"); err != nil {
		t.Fatal(err)
	}
	clock.skip(80 * time.Hour)
	works := newEngine(t, pool, with(w), clock.set)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for key, want := range map[string]workflow.Code{"late": workflow.CommandAbandoned, "scheduled": workflow.CommandAbandoned,
		"cancelled": workflow.CommandCancelled, "longer": "", "paused": ""} {
		r, err := works.Await(ctx, transitions.Ref{Scope: "s", Key: key})
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if got := workflow.CodeOf(r.Err()); got != want {
			t.Errorf("%s ends with %q, want %q", key, got, want)
		}
	}
	if n := posts.Load(); n != 2 {
		t.Errorf("%d letters were posted", n)
	}

	// The instance is where its workflow wants it, and the audit says why.
	inst, err := works.Read().Instance(t.Context(), "", ids["late"].Instance)
	if err != nil || inst.State != "returned" || !strings.Contains(string(inst.Data), string(workflow.FailureUntaken)) ||
		inst.Links.InFlight != nil {
		t.Errorf("got %+v, %v", inst, err)
	}
	entries, err := works.Read().History(t.Context(), "", inst.ID, 2, 10)
	if err != nil || len(entries) != 1 || entries[0].Transition != "post.failed" ||
		!strings.Contains(entries[0].Reason, "nobody took it for 1h0m0s") {
		t.Errorf("got %+v, %v", entries, err)
	}

	// A late poller, and a late duplicate.
	clock.skip(59 * time.Minute)
	for _, key := range []string{"late", "scheduled"} {
		r, err := accepts.Read().Command(t.Context(), transitions.Ref{Scope: "s", Key: key})
		if err != nil || r.Code != 408 || r.Status != transitions.FailedFinal || !strings.Contains(string(r.Body), `"command_abandoned"`) {
			t.Errorf("%s: %+v, %v", key, r, err)
		}
	}
	if r, err := accepts.Submit(t.Context(), posted(ids["late"].Instance, "late")); err != nil || r.Status != 408 || !r.Replayed {
		t.Errorf("got %+v, %v", r, err)
	}

	// A timer is late, and fires all the same.
	r, err := works.Await(ctx, transitions.Ref{Scope: decide.TimerScope(ids["timed"].Instance, "reminder"), Key: "1"})
	if err != nil || r.Err() != nil {
		t.Errorf("the timer: %+v, %v", r, err)
	}
}

// A pause is somebody's will: what becomes due in it was not left alone by all.
func TestWhatWaitedForTheEndOfAPauseIsDoneAfterIt(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	e := newEngine(t, pool, with(letters(1, hourly, nil)), clock.set)
	soon, later := written("soon", "x"), written("later", "x")
	soon.NotBefore, later.NotBefore = clock.Now().Add(time.Hour), clock.Now().Add(100*time.Hour)
	submit(t, e, soon)
	submit(t, e, later)
	if err := e.Admin().PauseWorkflow(t.Context(), "", "letter", "ann", "a long weekend"); err != nil {
		t.Fatal(err)
	}
	clock.skip(80 * time.Hour)
	retain(t, pool, clock.Now())
	if err := e.Admin().ResumeWorkflow(t.Context(), "", "letter"); err != nil {
		t.Fatal(err)
	}
	if r, err := e.Await(t.Context(), transitions.Ref{Scope: "s", Key: "soon"}); err != nil || r.Err() != nil {
		t.Errorf("got %+v, %v: %v", r, err, r.Err())
	}
	if at := query[time.Time](t, pool, "SELECT run_at FROM pawl.command WHERE key = 'later'"); !at.Equal(later.NotBefore) {
		t.Errorf("what was not due is due at %s now", at)
	}
}

// Its sender has been told that it is taken, and does not ask again.
func TestTheWorkOfAMessageIsDoneHoweverLate(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	brief := with(bankLoans().Keep(workflow.Horizons{Replay: time.Hour}))
	accepts := newEngine(t, pool, brief, clock.set, func(c *engine.Config) { c.InFlight.Workers = -1 })
	consumed(t, accepts, fromBank("m-1", "applied", `{"loan":"L-1","amount":100}`))
	if r := consumed(t, accepts, fromBank("m-2", "collect", `{"loan":"L-1"}`)); !r.InFlight() {
		t.Fatalf("got %+v", r)
	}
	clock.skip(1000 * time.Hour)
	retain(t, pool, clock.Now())
	works := newEngine(t, pool, brief, clock.set)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := works.Await(ctx, transitions.Ref{Scope: transitions.InboxScope("bank"), Key: "m-2"}); err != nil || r.Err() != nil {
		t.Errorf("it ends with %+v, %v", r, err)
	}
	if inst, err := works.Read().Instance(t.Context(), "", loanID("L-1")); err != nil || inst.State != "settled" {
		t.Errorf("got %+v, %v", inst, err)
	}
	wantDead(t, works)
}

// However many they are, and whoever has one of them locked when the pause is ended.
func TestNothingIsGivenUpBecauseOfAPause(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	e := newEngine(t, pool, with(letters(1, hourly, nil)), clock.set)
	hasty := newEngine(t, pool, with(letters(1, hourly, nil)), clock.set, func(c *engine.Config) {
		c.InFlight.Workers, c.Pipeline.LockWait = -1, time.Millisecond
	})
	var many []transitions.Command
	for i := range 1_200 { // more than a batch
		c := written(fmt.Sprint(i), "x")
		c.NotBefore, c.Tenant = clock.Now().Add(time.Hour), []string{"", "another"}[i%2]
		many = append(many, c)
	}
	for _, r := range e.SubmitMany(t.Context(), many) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for _, tenant := range []string{"", "another"} {
		if err := e.Admin().PauseWorkflow(t.Context(), tenant, "letter", "ann", "a long weekend"); err != nil {
			t.Fatal(err)
		}
	}
	clock.skip(80 * time.Hour)
	tx := begin(t, pool)
	if _, err := tx.Exec(t.Context(), "SELECT FROM pawl.command WHERE key IN ('0', '1198') FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, hasty.Admin().ResumeWorkflow(t.Context(), "", "letter"), workflow.Locked)
	if list, err := hasty.Admin().PausedWorkflows(t.Context(), ""); err != nil || len(list) != 1 {
		t.Fatalf("paused are %+v, %v", list, err)
	}
	rollback(t, tx)
	clock.skip(80 * time.Hour)
	if err := e.Admin().ResumeWorkflow(t.Context(), "", "letter"); err != nil {
		t.Fatal(err)
	}
	for _, c := range many {
		if c.Tenant == "" {
			if r, err := e.Await(t.Context(), transitions.Ref{Scope: c.Scope, Key: c.Key}); err != nil || r.Err() != nil {
				t.Fatalf("%s: %+v, %v", c.Key, r, err)
			}
		}
	}
	// Another tenant's are where they were.
	if n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE tenant = 'another' AND run_at = $1 AND attempt = 0",
		many[1].NotBefore); n != 600 {
		t.Errorf("%d of the other tenant's wait", n)
	}
}

// No node knows the workflow any more: whoever polls learns that it is over. When one
// knows it again the instance goes where its workflow wants it.
func TestWorkOfAWorkflowThatNobodyKnowsIsGivenUp(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	var posts atomic.Int64
	w := letters(1, hourly, func(context.Context, words) error {
		posts.Add(1)
		return nil
	})
	accepts := newEngine(t, pool, with(w), clock.set, func(c *engine.Config) { c.InFlight.Workers, c.Retention.Off = -1, true })
	ids := map[string]transitions.Receipt{}
	for _, key := range []string{"late", "longer", "paused"} {
		ids[key] = submit(t, accepts, written("w "+key, "x"))
		c := posted(ids[key].Instance, key)
		if key == "longer" {
			c.Replay = 100 * time.Hour
		}
		submit(t, accepts, c)
	}
	if _, err := accepts.Admin().Operate(t.Context(), transitions.Command{Key: "op", Instance: ids["paused"].Instance},
		transitions.Operation{Action: transitions.Pause}); err != nil {
		t.Fatal(err)
	}
	intact(t, accepts)
	clock.skip(50 * time.Hour)
	retains := newEngine(t, pool, clock.set) // which knows only loans
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := retains.Await(ctx, transitions.Ref{Scope: "s", Key: "late"})
	if err != nil || r.Status != 408 || workflow.CodeOf(r.Err()) != workflow.CommandAbandoned {
		t.Fatalf("it ends with %+v, %v", r, err)
	}
	if again, err := accepts.Submit(t.Context(), posted(ids["late"].Instance, "late")); err != nil || !again.Replayed ||
		string(again.Body) != string(r.Body) {
		t.Errorf("a duplicate gets %+v, %v", again, err)
	}
	for _, key := range []string{"longer", "paused"} {
		if r, err := retains.Read().Command(t.Context(), transitions.Ref{Scope: "s", Key: key}); err != nil || r.Status != transitions.Pending {
			t.Errorf("%s: %+v, %v", key, r, err)
		}
	}
	intact(t, accepts) // the instance waits for another command now
	works := newEngine(t, pool, with(w), clock.set)
	if r, err := works.Await(ctx, transitions.Ref{Scope: decide.LateScope + ids["late"].Instance.String(), Key: "2"}); err != nil || r.Status != 408 {
		t.Errorf("got %+v, %v", r, err)
	}
	inst, err := works.Read().Instance(t.Context(), "", ids["late"].Instance)
	if err != nil || inst.State != "returned" || !strings.Contains(string(inst.Data), string(workflow.FailureUntaken)) ||
		inst.Links.InFlight != nil {
		t.Errorf("got %+v, %v", inst, err)
	}
	for _, key := range []string{"longer", "paused"} {
		if r, err := works.Await(ctx, transitions.Ref{Scope: "s", Key: key}); err != nil || r.Err() != nil {
			t.Errorf("%s: %+v, %v", key, r, err)
		}
	}
	if n := posts.Load(); n != 2 {
		t.Errorf("%d letters were posted", n)
	}
	intact(t, works)
}
