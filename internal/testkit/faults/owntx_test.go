package faults

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// begin begins a caller's own transaction, which ends with the test at the
// latest.
func begin(t testing.TB, pool *pgxpool.Pool, options pgx.TxOptions) pgx.Tx {
	t.Helper()
	conn, err := pgx.ConnectConfig(bounded(t), pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	t.Cleanup(func() { // ends the transaction too
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = conn.Close(ctx)
	})
	tx, err := conn.BeginTx(bounded(t), options)
	require.NoError(t, err)
	return tx
}

func submitTx(t testing.TB, e *engine.Engine, tx pgx.Tx, c transitions.Command) transitions.Receipt {
	t.Helper()
	r, err := e.SubmitTx(bounded(t), tx, c)
	require.NoErrorf(t, err, "%s %s", c.Transition, c.Key)
	return r
}

// In a stricter transaction a command that met a concurrent one either commits
// or fails with what the caller can retry, and leaves nothing half done.
func TestSubmitTx_Serializable(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			e := start(t, pool)
			must(t, e, opening("x"))
			must(t, e, opening("y"))

			// Without concurrency.
			tx := begin(t, pool, pgx.TxOptions{IsoLevel: level})
			submitTx(t, e, tx, onCounter("x", "add", "alone", `{"by":1}`))
			submitTx(t, e, tx, onCounter("x", "add", "alone", `{"by":1}`))
			assert.NoError(t, tx.Commit(bounded(t)), "alone")

			// A command changed the instance since the snapshot.
			tx = begin(t, pool, pgx.TxOptions{IsoLevel: level})
			if _, err := tx.Exec(bounded(t), `SELECT 1`); err != nil {
				t.Fatal(err)
			}
			must(t, e, onCounter("x", "add", "first", `{"by":1}`))
			ctx := bounded(t)
			_, err := e.SubmitTx(ctx, tx, onCounter("x", "add", "second", `{"by":1}`))
			assert.Truef(t, workflow.CodeOf(err).Info().Retry && workflow.CodeOf(err) != workflow.Internal,
				"a changed instance: %v", err)
			assert.NoError(t, ctx.Err(), "the answer came only because its caller gave up")
			// The same key was used since the snapshot.
			_, err = e.SubmitTx(bounded(t), tx, onCounter("x", "add", "first", `{"by":1}`))
			assert.Truef(t, workflow.CodeOf(err).Info().Retry && workflow.CodeOf(err) != workflow.Internal,
				"a key that was used: %v", err)
			assert.NoError(t, tx.Rollback(bounded(t)), "the transaction is not usable")

			// Another transaction commits in between. They share only the log.
			tx = begin(t, pool, pgx.TxOptions{IsoLevel: level})
			submitTx(t, e, tx, onCounter("y", "add", "third", `{"by":1}`))
			must(t, e, onCounter("x", "add", "fourth", `{"by":1}`))
			committed := tx.Commit(bounded(t)) == nil
			t.Logf("%s: committed beside another: %v", level, committed)

			r := must(t, e, onCounter("y", "add", "third", `{"by":1}`))
			assert.Equal(t, committed, r.Replayed, "committed, replayed")
			assert.Equal(t, int64(1), number(t, pool, `SELECT (data->>'n')::bigint FROM pawl.instance WHERE business_key = 'y'`),
				"the effect happened times")
			r = must(t, e, onCounter("x", "add", "second", `{"by":1}`))
			assert.False(t, r.Replayed, "the second left its key")
			wantSound(t, e, pool)
		})
	}
}
