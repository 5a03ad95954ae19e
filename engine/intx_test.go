package engine_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
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
	pool := database(t)
	e := newEngine(t, pool)
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

func TestTheUsersSQLSeesTheDataAfterTheTransition(t *testing.T) {
	t.Parallel()
	pool := database(t)
	var saw loan
	var amount int
	see := func(_ context.Context, _ pgx.Tx, d loan, p payment) error { saw, amount = d, p.Amount; return nil }
	e := newEngine(t, pool, func(c *engine.Config) {
		c.Workflows = []workflow.Source{loans(1, engine.InTx(workflow.On("see", workflow.From("open"), workflow.Stay, pay).Or("settled"), see))}
	})
	submit(t, e, applied("L-1", 100))
	submit(t, e, on("see", "L-1", "s", 30, ""))
	want := (loan{Customer: "c-1", Region: "north", Owed: 70})
	assert.Truef(t, saw == want && amount == 30, "got %+v and %d", saw, amount)
}

func TestARefusalOfTheUsersSQLUndoesItAndIsStored(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	for i := range 3 {
		r, err := e.Submit(t.Context(), on("book", "L-1", "b", 30, "refuse"))
		require.Truef(t, err == nil && r.Status == 409 && r.Version == 0 && r.Position == 0 && r.Replayed == (i > 0),
			"got %+v, %v", r, err)
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
	pool := database(t)
	e := newEngine(t, pool, func(c *engine.Config) { c.Pipeline.LockWait, c.Pipeline.Outage = time.Hour, time.Hour })
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

// The users' SQL of one instance never overlaps, and everything adds up.
func TestTheUsersSQLOfManyCallersAddsUp(t *testing.T) {
	t.Parallel()
	pool := database(t)
	var inside, most, ran atomic.Int64
	alone := func(ctx context.Context, tx pgx.Tx, d loan, p payment) error {
		most.Store(max(most.Load(), inside.Add(1)))
		defer inside.Add(-1)
		ran.Add(1)
		return ledger(ctx, tx, d, p)
	}
	e := newEngine(t, pool, func(c *engine.Config) {
		c.Workflows = []workflow.Source{loans(1, engine.InTx(workflow.On("buy", workflow.From("open"), workflow.Stay, pay).Or("settled"), alone))}
	})
	submit(t, e, applied("L-1", 1000))
	var work sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		for range 3 { // three attempts of each intent
			work.Go(func() {
				for _, n := range []string{"1", "2", "3"} {
					if r, err := e.Submit(t.Context(), on("buy", "L-1", key+n, 10, "")); err != nil || r.Refused() {
						t.Errorf("%s: %+v, %v", key+n, r, err)
					}
				}
			})
		}
	}
	work.Wait()
	assert.Equal(t, int64(1), most.Load(), "ran at once on one instance")
	inst, err := e.Read().InstanceByKey(t.Context(), "", "loan", "L-1")
	assert.Truef(t, err == nil && inst.Version == 19 && strings.Contains(string(inst.Data), `"owed":820`),
		"got version %d, %s, %v", inst.Version, inst.Data, err)
	assert.Equal(t, 180, query[int](t, pool, "SELECT sum(amount) FROM ledger"), "the ledger says")
	assert.Equal(t, int64(18), ran.Load(), "it ran times for 18 intents, with nobody else around")
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
	_, err := e.Submit(t.Context(), on("buy", "L-1", "slow", 1, "sleep"))
	wantCode(t, err, workflow.TimedOut)
	wantMore(t, pool, before, nil)
	eventually(t, "it is done when it takes no time, which a busy machine may not give it at once", func() bool {
		r, err := e.Submit(t.Context(), on("buy", "L-1", "slow", 1, ""))
		require.False(t, err != nil && workflow.CodeOf(err) != workflow.TimedOut, err)
		return err == nil && !r.Refused()
	})
	wantMore(t, pool, before, oneTransition)
}
