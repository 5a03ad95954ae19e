package engine_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func begin(t testing.TB, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rollback(t, tx) })
	return tx
}

func submitTx(t testing.TB, e *engine.Engine, tx pgx.Tx, c transitions.Command) transitions.Receipt {
	t.Helper()
	r, err := e.SubmitTx(t.Context(), tx, c)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Fatalf("%s %s: %v", c.Transition, c.Key, err)
	}
	return r
}

func commitTx(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestACommandInACallersTransactionIsSeenWhenThatCommits(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	if _, err := tx.Exec(t.Context(), "INSERT INTO ledger VALUES ('mine', 1)"); err != nil {
		t.Fatal(err)
	}
	r := submitTx(t, e, tx, on("pay", "L-1", "p", 30, ""))
	if r.Position != 0 || r.Version != 2 || r.Status != 200 || strings.Contains(string(r.Body), "position") {
		t.Errorf("got %+v %s", r, r.Body)
	}
	wantMore(t, pool, before, nil)
	inst, err := e.Read().InstanceByKey(t.Context(), "", "loan", "L-1")
	if err != nil || inst.Version != 1 {
		t.Errorf("before the commit: %+v, %v", inst, err)
	}
	commitTx(t, tx)
	wantMore(t, pool, before, oneBooking)
	again := submit(t, e, on("pay", "L-1", "p", 30, ""))
	if !again.Replayed || again.Position != 2 || string(again.Body) != string(transitions.WithPosition(r.Body, 2)) {
		t.Errorf("its replay: %+v %s", again, again.Body)
	}
}

func TestACommandGoesWithACallersTransactionThatIsRolledBack(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	submitTx(t, e, tx, on("pay", "L-1", "p", 30, ""))
	submitTx(t, e, tx, applied("L-2", 5))
	rollback(t, tx)
	wantMore(t, pool, before, nil)
	if r := submit(t, e, on("pay", "L-1", "p", 30, "")); r.Replayed || r.Position != 2 {
		t.Errorf("the key was used up, or a position lost: %+v", r)
	}
}

func TestAnErrorLeavesTheCallersTransactionUsable(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
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
		_, err := e.SubmitTx(t.Context(), tx, tt.command)
		wantCode(t, err, tt.want)
		if _, err := tx.Exec(t.Context(), "SELECT 1"); err != nil {
			t.Fatalf("after %s: %v", tt.want, err)
		}
	}
	submitTx(t, e, tx, on("pay", "L-1", "fine", 1, ""))
	commitTx(t, tx)
	wantMore(t, pool, before, oneTransition)
}

func TestARefusalInACallersTransactionIsStoredWithIt(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	submit(t, e, applied("L-1", 100))
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	for _, c := range []transitions.Command{on("pay", "L-1", "a", 101, ""), on("book", "L-1", "b", 1, "refuse")} {
		r, err := e.SubmitTx(t.Context(), tx, c)
		if err != nil || r.Status != 409 {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	commitTx(t, tx)
	wantMore(t, pool, before, map[string]int{"pawl.command": 2})
	if r, err := e.Submit(t.Context(), on("pay", "L-1", "a", 101, "")); err != nil || !r.Replayed || r.Status != 409 {
		t.Errorf("its replay: %+v, %v", r, err)
	}
}

func TestSeveralCommandsInOneTransaction(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	before := rowCounts(t, pool)
	tx := begin(t, pool)
	submitTx(t, e, tx, applied("L-1", 100))
	submitTx(t, e, tx, on("pay", "L-1", "a", 10, ""))
	submitTx(t, e, tx, applied("L-2", 5))
	submitTx(t, e, tx, on("book", "L-1", "b", 90, ""))
	again := submitTx(t, e, tx, on("pay", "L-1", "a", 10, ""))
	if !again.Replayed || again.Position != 0 || strings.Contains(string(again.Body), "position") {
		t.Errorf("a retry within the transaction: %+v %s", again, again.Body)
	}
	r, err := e.SubmitTx(t.Context(), tx, on("pay", "L-1", "c", 1, ""))
	if err != nil || workflow.CodeOf(r.Err()) != workflow.IllegalTransition {
		t.Errorf("after the end: %+v, %v", r, err)
	}
	commitTx(t, tx)
	wantMore(t, pool, before, map[string]int{"pawl.instance": 2, "pawl.command": 5, "pawl.audit": 4, "pawl.outbox": 5, "head": 4, "ledger": 1})
	positions := map[string]int64{}
	for _, number := range []string{"L-1", "L-2"} {
		history, err := e.Read().History(t.Context(), "", loanID(number), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range history {
			positions[entry.Key] = entry.Position
		}
	}
	for key, want := range map[string]int64{"apply-L-1": 1, "a": 2, "apply-L-2": 3, "b": 4} {
		if positions[key] != want {
			t.Errorf("%s has position %d, want %d", key, positions[key], want)
		}
	}
	v, err := e.Admin().Verify(t.Context(), "", uuid.Nil)
	if err != nil || len(v.Broken) != 0 {
		t.Errorf("got %+v, %v", v, err)
	}
}

// A transaction that dawdles holds the log of nobody: others commit meanwhile,
// and come first.
func TestThePositionIsGivenAtTheCommit(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	submit(t, e, applied("L-1", 100))
	submit(t, e, applied("L-2", 100))
	tx := begin(t, pool)
	submitTx(t, e, tx, on("pay", "L-1", "slow", 1, ""))
	for i, key := range []string{"a", "b", "c"} {
		if r := submit(t, e, on("pay", "L-2", key, 1, "")); r.Position != int64(3+i) {
			t.Errorf("%s has position %d", key, r.Position)
		}
	}
	commitTx(t, tx)
	if r := submit(t, e, on("pay", "L-1", "slow", 1, "")); r.Position != 6 {
		t.Errorf("the slow one has position %d, want 6", r.Position)
	}
}

func TestTwoTransactionsWithOneKeyHaveOneEffect(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	before := rowCounts(t, pool)
	one, two := begin(t, pool), begin(t, pool)
	first := submitTx(t, e, one, applied("L-1", 100))
	type answer struct {
		r   transitions.Receipt
		err error
	}
	var waiting uint32
	if err := two.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&waiting); err != nil {
		t.Fatal(err)
	}
	done := make(chan answer, 1)
	go func() {
		r, err := e.SubmitTx(t.Context(), two, applied("L-1", 100))
		done <- answer{r, err}
	}()
	pgtest.WaitBlockedPID(t, pool, waiting)
	commitTx(t, one)
	second := <-done
	if second.err != nil || !second.r.Replayed || second.r.Instance != first.Instance || second.r.Position != 1 {
		t.Errorf("got %+v, %v", second.r, second.err)
	}
	commitTx(t, two)
	wantMore(t, pool, before, map[string]int{"pawl.instance": 1, "pawl.command": 1, "pawl.audit": 1, "pawl.outbox": 1, "head": 1})
}
