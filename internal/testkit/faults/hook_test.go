package faults

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// What the user's SQL does wrong is the command's own fault: it is answered at
// once, nothing of it stays, and the same key may be tried again.
func TestInTx_Failure(t *testing.T) {
	for _, what := range []string{"error", "panic", "forbidden", "swallow", "commit", "rollback"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			if _, err := pool.Exec(t.Context(), ledgerTable); err != nil {
				t.Fatal(err)
			}
			e := start(t, pool)
			must(t, e, opening("x"))
			_, err := e.Submit(bounded(t), onCounter("x", "write", "2", `{"what":"`+what+`"}`))
			wantCode(t, what, err, workflow.Internal)
			if n := number(t, pool, `SELECT (SELECT count(*) FROM ledger) + (SELECT count(*) FROM pawl.command WHERE key = '2')`); n != 0 {
				t.Errorf("%d rows stayed", n)
			}
			assert.Equal(t, int64(0), e.Admin().Stats().Lost, "connections were given up")
			must(t, e, onCounter("x", "add", "3", `{"by":1}`))
		})
	}
}

func TestInTx_Refusal(t *testing.T) {
	t.Parallel()
	pool := database(t)
	_, err := pool.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	e := start(t, pool)
	must(t, e, opening("x"))
	for _, replayed := range []bool{false, true} {
		r, err := e.Submit(bounded(t), onCounter("x", "write", "2", `{"what":"refuse"}`))
		require.Truef(t, err == nil && r.Replayed == replayed, "replayed %v, %v; want %v", r.Replayed, err, replayed)
		wantCode(t, "refuse", r.Err(), workflow.GuardRefused)
	}
	assert.Equal(t, int64(0), number(t, pool, `SELECT count(*) FROM ledger`), "what the refusing SQL wrote stayed")
	wantSound(t, e, pool)
}

// The same in a caller's transaction, which goes on.
func TestInTx_FailureInSubmitTx(t *testing.T) {
	t.Parallel()
	pool := database(t)
	if _, err := pool.Exec(t.Context(), ledgerTable); err != nil {
		t.Fatal(err)
	}
	e := start(t, pool)
	must(t, e, opening("x"))
	ctx := bounded(t)
	tx, err := pool.Begin(ctx)
	require.NoError(t, err)
	defer func() {
		assert.Error(t, tx.Rollback(context.WithoutCancel(ctx)), "the transaction was still open")
	}()
	for _, what := range []string{"error", "panic", "forbidden", "swallow"} {
		_, err = e.SubmitTx(ctx, tx, onCounter("x", "write", what, `{"what":"`+what+`"}`))
		wantCode(t, what, err, workflow.Internal)
		assert.Falsef(t, what == "error" && !errors.Is(err, errLedger), "the cause is lost: %v", err)
	}
	_, err = e.SubmitTx(ctx, tx, onCounter("x", "write", "good", `{"what":"good"}`))
	require.NoError(t, err)
	require.NoError(t, tx.Commit(ctx))
	assert.Equal(t, int64(1), number(t, pool, `SELECT count(*) FROM ledger`), "the ledger has rows, want 1")
	wantSound(t, e, pool)
}

// SQL that takes too long is ended, and nothing of its command stays.
func TestUsersSQLMayTakeOnlySoLong(t *testing.T) {
	t.Parallel()
	pool := database(t)
	if _, err := pool.Exec(t.Context(), ledgerTable); err != nil {
		t.Fatal(err)
	}
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.HookTimeout = 300 * time.Millisecond })
	must(t, e, opening("x"))
	_, err := e.Submit(bounded(t), onCounter("x", "write", "long", `{"what":"sleep"}`))
	wantCode(t, "sleep", err, workflow.TimedOut)
	assert.Equal(t, int64(0), number(t, pool, `SELECT count(*) FROM pawl.command WHERE key = 'long'`), "the command left its key")
	ctx := bounded(t)
	short := onCounter("x", "write", "short", `{"what":"short"}`)
	_, err = e.Submit(ctx, short)
	for workflow.CodeOf(err) == workflow.TimedOut && ctx.Err() == nil { // this machine may be slower than that
		_, err = e.Submit(ctx, short)
	}
	wantCode(t, "what takes no time", err, "")
	waitUntil(t, "the statement is ended", func() bool {
		return number(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND state = 'active' AND query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()`) == 0
	})
	wantSound(t, e, pool)
}

// SQL that meets a lock waits for it as its command would, and is run again.
func TestUsersSQLWaitsForALock(t *testing.T) {
	t.Parallel()
	pool := database(t)
	_, err := pool.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	e := start(t, pool)
	must(t, e, opening("x"))
	release := hold(t, pool, `INSERT INTO ledger VALUES ('busy')`)
	waits := submit(bounded(t), e, onCounter("x", "write", "1", `{"what":"busy"}`))
	behind := submit(bounded(t), e, onCounter("x", "add", "2", `{"by":1}`))
	pgtest.WaitBlocked(t, pool, "INSERT INTO ledger")
	must(t, e, opening("y"))
	release()
	wantDone(t, []<-chan answered{waits, behind})
	assert.Equal(t, int64(1), number(t, pool, `SELECT count(*) FROM ledger`), "the ledger has rows")
	wantSound(t, e, pool)
}
