package engine_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func begin(t testing.TB, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { rollback(t, tx) })
	return tx
}

func submitTx(t testing.TB, e *engine.Engine, tx pgx.Tx, c transitions.Command) transitions.Receipt {
	t.Helper()
	r, err := e.SubmitTx(t.Context(), tx, c)
	if err == nil {
		err = r.Err()
	}
	require.NoErrorf(t, err, "%s %s", c.Transition, c.Key)
	return r
}

func commitTx(t testing.TB, tx pgx.Tx) {
	t.Helper()
	require.NoError(t, tx.Commit(t.Context()))
}

func TestSubmitTx_Commit(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	_, err := tx.Exec(t.Context(), "INSERT INTO ledger VALUES ('mine', 1)")
	require.NoError(t, err)
	r := submitTx(t, e, tx, on("pay", "L-1", "p", 30, ""))
	assert.Truef(t, r.Position == 0 && r.Version == 2 && r.Status == 200 && !strings.Contains(string(r.Body), "position"),
		"got %+v %s", r, r.Body)
	wantMore(t, pool, before, nil)
	inst, err := e.Read().InstanceByKey(t.Context(), "", "loan", "L-1")
	assert.Truef(t, err == nil && inst.Version == 1, "before the commit: %+v, %v", inst, err)
	commitTx(t, tx)
	wantMore(t, pool, before, oneBooking)
	again := submit(t, e, on("pay", "L-1", "p", 30, ""))
	assert.Truef(t, again.Replayed && again.Position == 2 && string(again.Body) == string(transitions.WithPosition(r.Body, 2)),
		"its replay: %+v %s", again, again.Body)
}

func TestSubmitTx_Rollback(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	submitTx(t, e, tx, on("pay", "L-1", "p", 30, ""))
	submitTx(t, e, tx, applied("L-2", 5))
	rollback(t, tx)
	wantMore(t, pool, before, nil)
	r := submit(t, e, on("pay", "L-1", "p", 30, ""))
	assert.Truef(t, !r.Replayed && r.Position == 2, "the key was used up, or a position lost: %+v", r)
}

func TestAnErrorLeavesTheCallersTransactionUsable(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	submit(t, e, on("pay", "L-1", "used", 1, ""))
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	other := on("pay", "L-1", "used", 2, "")
	for _, tt := range []struct {
		command transitions.Command
		want    workflow.Code
	}{
		{on("pay", "L-9", "a", 1, ""), workflow.InstanceNotFound},
		{on("pay", "L-1", "b", 0, ""), workflow.InvalidPayload},
		{on("pay", "L-1", "", 1, ""), workflow.KeyMissing},
		{on("fly", "L-1", "c", 1, ""), workflow.TransitionNotFound},
		{other, workflow.KeyReused},
		{transitions.Command{Workflow: "loan", Transition: "forgive", BusinessKey: "L-1", Key: "d"}, workflow.RoleRequired},
		{on("book", "L-1", "e", 1, "fail"), workflow.Internal},
		{on("book", "L-1", "f", 1, "panic"), workflow.Internal},
		{on("book", "L-1", "g", 1, "violate"), workflow.Internal},
		{on("book", "L-1", "h", 1, "violate and hide it"), workflow.Internal},
	} {
		wantCode(t, errOf(e.SubmitTx(t.Context(), tx, tt.command)), tt.want)
		require.NoErrorf(t, errOf(tx.Exec(t.Context(), "SELECT 1")), "after %s", tt.want)
	}
	submitTx(t, e, tx, on("pay", "L-1", "fine", 1, ""))
	commitTx(t, tx)
	wantMore(t, pool, before, oneTransition)
}

func TestSubmitTx_Refusal(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	for _, c := range []transitions.Command{on("pay", "L-1", "a", 101, ""), on("book", "L-1", "b", 1, "refuse")} {
		r, err := e.SubmitTx(t.Context(), tx, c)
		assert.Truef(t, err == nil && r.Status == 409, "got %+v, %v", r, err)
	}
	commitTx(t, tx)
	wantMore(t, pool, before, map[string]int{"pawl.command": 2})
	r, err := e.Submit(t.Context(), on("pay", "L-1", "a", 101, ""))
	assert.Truef(t, err == nil && r.Replayed && r.Status == 409, "its replay: %+v, %v", r, err)
}

func TestSeveralCommandsInOneTransaction(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	submitTx(t, e, tx, applied("L-1", 100))
	submitTx(t, e, tx, on("pay", "L-1", "a", 10, ""))
	submitTx(t, e, tx, applied("L-2", 5))
	submitTx(t, e, tx, on("book", "L-1", "b", 90, ""))
	again := submitTx(t, e, tx, on("pay", "L-1", "a", 10, ""))
	assert.Truef(t, again.Replayed && again.Position == 0 && !strings.Contains(string(again.Body), "position"),
		"a retry within the transaction: %+v %s", again, again.Body)
	r, err := e.SubmitTx(t.Context(), tx, on("pay", "L-1", "c", 1, ""))
	assert.Truef(t, err == nil && workflow.CodeOf(r.Err()) == workflow.IllegalTransition, "after the end: %+v, %v", r, err)
	commitTx(t, tx)
	wantMore(t, pool, before, map[string]int{"pawl.instance": 2, "pawl.command": 5, "pawl.audit": 4, "pawl.outbox": 5, "head": 4, "ledger": 1})
	positions := map[string]int64{}
	for _, number := range []string{"L-1", "L-2"} {
		history, err := e.Read().History(t.Context(), "", loanID(number), 0, 10)
		require.NoError(t, err)
		for _, entry := range history {
			positions[entry.Key] = entry.Position
		}
	}
	for key, want := range map[string]int64{"apply-L-1": 1, "a": 2, "apply-L-2": 3, "b": 4} {
		assert.Equalf(t, want, positions[key], "%s has position", key)
	}
	v, err := e.Admin().Verify(t.Context(), "", uuid.Nil)
	assert.Truef(t, err == nil && len(v.Broken) == 0, "got %+v, %v", v, err)
}

// An idle transaction does not hold the log: others commit meanwhile and have earlier positions.
func TestThePositionIsGivenAtTheCommit(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	submit(t, e, applied("L-1", 100))
	submit(t, e, applied("L-2", 100))
	tx := begin(t, pool)
	submitTx(t, e, tx, on("pay", "L-1", "slow", 1, ""))
	for i, key := range []string{"a", "b", "c"} {
		r := submit(t, e, on("pay", "L-2", key, 1, ""))
		assert.Equalf(t, int64(3+i), r.Position, "%s has position", key)
	}
	commitTx(t, tx)
	r := submit(t, e, on("pay", "L-1", "slow", 1, ""))
	assert.Equal(t, int64(6), r.Position, "the slow one has position, want 6")
}

func TestTwoTransactionsWithOneKeyHaveOneEffect(t *testing.T) {
	t.Parallel()
	pool, e := started(t)
	before := rowCounts(t, pool)
	one, two := begin(t, pool), begin(t, pool)
	first := submitTx(t, e, one, applied("L-1", 100))
	type answer struct {
		r   transitions.Receipt
		err error
	}
	var waiting uint32
	require.NoError(t, two.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&waiting))
	done := make(chan answer, 1)
	go func() {
		r, err := e.SubmitTx(t.Context(), two, applied("L-1", 100))
		done <- answer{r, err}
	}()
	pgtest.WaitBlockedPID(t, pool, waiting)
	commitTx(t, one)
	second := <-done
	assert.Truef(t, second.err == nil && second.r.Replayed && second.r.Instance == first.Instance && second.r.Position == 1,
		"got %+v, %v", second.r, second.err)
	commitTx(t, two)
	wantMore(t, pool, before, map[string]int{"pawl.instance": 1, "pawl.command": 1, "pawl.audit": 1, "pawl.outbox": 1, "head": 1})
}
