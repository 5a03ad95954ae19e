package engine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// oneTransition is what a transition with one event adds; with its own SQL, the
// ledger too.
var (
	oneTransition = map[string]int{"pawl.command": 1, "pawl.audit": 1, "pawl.outbox": 1, "head": 1}
	oneBooking    = map[string]int{"pawl.command": 1, "pawl.audit": 1, "pawl.outbox": 1, "head": 1, "ledger": 1}
)

func TestTheUsersSQLCommitsWithItsCommand(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	first := submit(t, e, on("book", "L-1", "b", 30, ""))
	wantMore(t, pool, before, oneBooking)
	assert.Truef(t, first.Position == 2 && first.Version == 2, "got %+v", first)
	for range 3 { // a replay does not run it again
		again := submit(t, e, on("book", "L-1", "b", 30, ""))
		assert.Truef(t, again.Replayed && bytes.Equal(again.Body, first.Body),
			"got %s, replayed %v, want %s", again.Body, again.Replayed, first.Body)
	}
	wantMore(t, pool, before, oneBooking)
}

func TestARefusalOfTheUsersSQLUndoesItAndIsStored(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	for i := range 3 {
		r, err := e.Submit(t.Context(), on("book", "L-1", "b", 30, "refuse"))
		require.Truef(t, err == nil && r.Status == 409 && r.Version == 0 && r.Position == 0 && r.Replayed == (i > 0), "got %+v, %v", r, err)
		e := r.Err()
		wantCode(t, e, workflow.GuardRefused)
		assert.Truef(t, strings.Contains(e.Error(), "the limit is reached") && strings.Contains(string(r.Body), `"state":"open"`),
			"the caller is told %s", r.Body)
	}
	wantMore(t, pool, before, map[string]int{"pawl.command": 1})
	inst, err := e.Read().InstanceByKey(t.Context(), "", "loan", "L-1")
	assert.Truef(t, err == nil && inst.Version == 1, "got %+v, %v", inst, err)
	own := errLimit.(*workflow.Error)
	assert.Equalf(t, workflow.State(""), own.State, "the user's own value was changed: %+v", own)
}

func TestInTx_OtherFailures(t *testing.T) {
	t.Parallel()
	pool, e := started(t, func(c *engine.Config) { c.Pipeline.LockWait, c.Pipeline.Outage = time.Hour, time.Hour })
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	for _, do := range []string{"fail", "fail with a code", "panic", "violate", "violate and hide it"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it is said at once, and not tried again for long
		r, err := e.Submit(ctx, on("book", "L-1", "b-"+do, 30, do))
		cancel()
		wantCode(t, err, workflow.Internal)
		assert.Truef(t, r.Status == 0 && r.Body == nil, "%s: an answer %+v with the error", do, r)
		told := string(transitions.ProblemOf(err).JSON())
		for _, secret := range []string{"secret", "ledger", "division", "not yours"} {
			assert.NotContainsf(t, told, secret, "%s: the caller is told", do)
		}
		wantMore(t, pool, before, nil)
	}
	// The keys are free: the same intent may be tried again.
	for _, do := range []string{"fail", "panic", "violate"} {
		c := on("book", "L-1", "b-"+do, 10, "")
		assert.Falsef(t, submit(t, e, c).Replayed, "%s: replayed", do)
	}
}

func TestInTx_Timeout(t *testing.T) {
	t.Parallel()
	pool := database(t)
	sleepy := func(ctx context.Context, tx pgx.Tx, _ loan, p payment) error {
		if p.Do == "" {
			return nil
		}
		_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
		return err
	}
	e := newEngine(t, pool, func(c *engine.Config) {
		c.Pipeline.HookTimeout = 200 * time.Millisecond
		c.Workflows = []workflow.Source{loans(1, engine.InTx(workflow.On("buy", workflow.From("open"), workflow.Stay, pay).Or("settled"),
			sleepy))}
	})
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	wantCode(t, errOf(e.Submit(t.Context(), on("buy", "L-1", "slow", 1, "sleep"))), workflow.TimedOut)
	wantMore(t, pool, before, nil)
	eventually(t, "it is done when it takes no time, which a busy machine may not give it at once", func() bool {
		r, err := e.Submit(t.Context(), on("buy", "L-1", "slow", 1, ""))
		require.False(t, err != nil && workflow.CodeOf(err) != workflow.TimedOut, err)
		return err == nil && !r.Refused()
	})
	wantMore(t, pool, before, oneTransition)
}
