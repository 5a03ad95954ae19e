package faults

import (
	"bytes"
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

// A position is given at commit. Until then nobody sees one, not even a retry in
// the same transaction; after it every retry sees the same.
func TestSubmitTx_RetryInTransaction(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool)
	must(t, e, opening("x"))
	tx := begin(t, pool, pgx.TxOptions{})
	first := submitTx(t, e, tx, onCounter("x", "add", "2", `{"by":1}`))
	retry := submitTx(t, e, tx, onCounter("x", "add", "2", `{"by":1}`))
	assert.Truef(t, first.Position == 0 && retry.Position == 0 && retry.Replayed && bytes.Equal(first.Body, retry.Body),
		"first  %d %s\nretry %d %v %s", first.Position, first.Body, retry.Position, retry.Replayed, retry.Body)
	require.NoError(t, tx.Commit(bounded(t)))
	later := must(t, e, onCounter("x", "add", "2", `{"by":1}`))
	assert.Truef(t, later.Position == 2 && later.Replayed && string(later.Body) == string(transitions.WithPosition(first.Body, 2)),
		"later %d %v %s", later.Position, later.Replayed, later.Body)
	wantSound(t, e, pool)
}

// Several commands of one transaction, on one instance and on a new one, get
// their positions in their order.
func TestSubmitTx_Order(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool)
	must(t, e, opening("x"))
	tx := begin(t, pool, pgx.TxOptions{})
	submitTx(t, e, tx, onCounter("x", "announce", "1", `{"by":1}`))
	submitTx(t, e, tx, opening("y"))
	submitTx(t, e, tx, onCounter("y", "add", "2", `{"by":1}`))
	submitTx(t, e, tx, onCounter("x", "add", "3", `{"by":1}`))
	must(t, e, opening("z")) // commits first
	require.NoError(t, tx.Commit(bounded(t)))
	for key, want := range map[string]int64{"open x": 1, "open z": 2, "1": 3, "open y": 4, "2": 5, "3": 6} {
		assert.Equalf(t, want, number(t, pool, `SELECT position FROM pawl.audit WHERE key = $1`, key), "command %s has position", key)
	}
	wantSound(t, e, pool)
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

			// Nobody interferes.
			tx := begin(t, pool, pgx.TxOptions{IsoLevel: level})
			submitTx(t, e, tx, onCounter("x", "add", "alone", `{"by":1}`))
			submitTx(t, e, tx, onCounter("x", "add", "alone", `{"by":1}`))
			assert.NoError(t, tx.Commit(bounded(t)), "alone")

			// Somebody changed the instance since the snapshot.
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

			// Somebody commits elsewhere while it is open; only the log is shared.
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
