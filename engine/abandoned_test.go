package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// A node accepts, and none works; the clock moves past the horizons; then one
// does.
func TestAbandoned_LatePoller(t *testing.T) {
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
		r := submit(t, accepts, c)
		require.Truef(t, r.InFlight() && r.Record.Attempt == 0, "%s: %+v", key, r)
	}
	creation := written("scheduled", "x")
	creation.NotBefore = begun.Add(time.Hour)
	submit(t, accepts, creation)
	operate(t, accepts, transitions.Command{Key: "op", Instance: ids["paused"].Instance}, transitions.Operation{Action: transitions.Pause})
	_, err := accepts.Cancel(t.Context(), transitions.Ref{Scope: "s", Key: "cancelled"}, "ann")
	require.NoError(t, err)
	clock.skip(80 * time.Hour)
	works := newEngine(t, pool, with(w), clock.set)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for key, want := range map[string]workflow.Code{"late": workflow.CommandAbandoned, "scheduled": workflow.CommandAbandoned,
		"cancelled": workflow.CommandCancelled, "longer": "", "paused": ""} {
		r, err := works.Await(ctx, transitions.Ref{Scope: "s", Key: key})
		require.NoError(t, err, key)
		assert.Equalf(t, want, workflow.CodeOf(r.Err()), "%s ends with", key)
	}
	assert.Equal(t, int64(2), posts.Load(), "letters were posted")

	// The instance is where its workflow wants it, and the audit says why.
	inst, err := works.Read().Instance(t.Context(), "", ids["late"].Instance)
	assert.Truef(t, err == nil && inst.State == "returned" && strings.Contains(string(inst.Data), string(workflow.FailureUntaken)) &&
		inst.Links.InFlight == nil, "got %+v, %v", inst, err)
	entries, err := works.Read().History(t.Context(), "", inst.ID, 2, 10)
	assert.Truef(t, err == nil && len(entries) == 1 && entries[0].Transition == "post.failed" &&
		strings.Contains(entries[0].Reason, "no node claimed it for 1h0m0s"), "got %+v, %v", entries, err)

	// A late poller, and a late duplicate.
	clock.skip(59 * time.Minute)
	for _, key := range []string{"late", "scheduled"} {
		r, err := accepts.Read().Command(t.Context(), transitions.Ref{Scope: "s", Key: key})
		assert.Truef(t, err == nil && r.Code == 408 && r.Status == transitions.FailedFinal &&
			strings.Contains(string(r.Body), `"command_abandoned"`), "%s: %+v, %v", key, r, err)
	}
	if r, err := accepts.Submit(t.Context(), posted(ids["late"].Instance, "late")); err != nil || r.Status != 408 || !r.Replayed {
		t.Errorf("got %+v, %v", r, err)
	}

	// A timer is late, and fires all the same.
	r, err := works.Await(ctx, transitions.Ref{Scope: decide.TimerScope(ids["timed"].Instance, "reminder"), Key: "1"})
	assert.Truef(t, err == nil && r.Err() == nil, "the timer: %+v, %v", r, err)
}

// Its sender has been told that it is taken, and does not ask again.
func TestTheWorkOfAMessageIsDoneHoweverLate(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	brief := with(bankLoans().Keep(workflow.Horizons{Replay: time.Hour}))
	accepts := newEngine(t, pool, brief, clock.set, func(c *engine.Config) { c.InFlight.Workers = -1 })
	consumed(t, accepts, fromBank("m-1", "applied", `{"loan":"L-1","amount":100}`))
	r := consumed(t, accepts, fromBank("m-2", "collect", `{"loan":"L-1"}`))
	require.Truef(t, r.InFlight(), "got %+v", r)
	clock.skip(1000 * time.Hour)
	retain(t, pool, clock.Now())
	works := newEngine(t, pool, brief, clock.set)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := works.Await(ctx, transitions.Ref{Scope: transitions.InboxScope("bank"), Key: "m-2"})
	assert.Truef(t, err == nil && r.Err() == nil, "it ends with %+v, %v", r, err)
	inst, err := works.Read().Instance(t.Context(), "", loanID("L-1"))
	assert.Truef(t, err == nil && inst.State == "settled", "got %+v, %v", inst, err)
	wantDead(t, works)
}

// This holds for many commands, and if another transaction has locked one of them when the pause ends.
func TestPause_DoesNotAbandon(t *testing.T) {
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
		require.NoError(t, r.Err)
	}
	for _, tenant := range []string{"", "another"} {
		require.NoError(t, e.Admin().PauseWorkflow(t.Context(), tenant, "letter", "ann", "a long weekend"))
	}
	clock.skip(80 * time.Hour)
	tx := begin(t, pool)
	require.NoError(t, errOf(tx.Exec(t.Context(), "SELECT FROM pawl.command WHERE key IN ('0', '1198') FOR UPDATE")))
	wantCode(t, hasty.Admin().ResumeWorkflow(t.Context(), "", "letter"), workflow.Locked)
	list, err := hasty.Admin().PausedWorkflows(t.Context(), "")
	require.Truef(t, err == nil && len(list) == 1, "paused are %+v, %v", list, err)
	rollback(t, tx)
	clock.skip(80 * time.Hour)
	require.NoError(t, e.Admin().ResumeWorkflow(t.Context(), "", "letter"))
	eventually(t, "all of them succeed", func() bool {
		return query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE tenant = 'default' AND scope = 's' AND status = 'succeeded'") == 600
	})
	// Another tenant's are where they were.
	n := query[int](t, pool, "SELECT count(*) FROM pawl.command WHERE tenant = 'another' AND run_at = $1 AND attempt = 0", many[1].NotBefore)
	assert.Equal(t, 600, n, "the other tenant's wait")
}
