package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestCommandsOfManyTenantsInOneGroupAreAllDurable(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	const tenants = 200
	var cs []transitions.Command
	for n := range tenants {
		tenant := fmt.Sprintf("tenant-%03d", n)
		cs = append(cs,
			transitions.Command{Tenant: tenant, Workflow: "loan", Transition: "apply", Key: "1", Payload: []byte(`{"number":"1","amount":5}`)},
			transitions.Command{Tenant: tenant, Workflow: "loan", Transition: "pay", BusinessKey: "1", Key: "2", Payload: []byte(`{"amount":5}`)})
	}
	for round := range 2 { // the second is replayed
		for i, r := range e.SubmitMany(t.Context(), cs) {
			if r.Err != nil || r.Receipt.Refused() || r.Receipt.Replayed != (round == 1) || r.Receipt.Position != int64(i%2+1) {
				t.Fatalf("round %d, command %d: %+v, %v", round, i, r.Receipt, r.Err)
			}
		}
	}
	for table, want := range map[string]int64{"command": 2 * tenants, "instance": tenants, "audit": 2 * tenants, "outbox": 3 * tenants, "log": tenants} {
		if got := query[int64](t, pool, "SELECT count(*) FROM pawl."+table); got != want {
			t.Errorf("%d rows in %s; want %d", got, table, want)
		}
	}
	if stray := query[int64](t, pool, `SELECT count(*) FROM pawl.log l WHERE head <> (SELECT count(*) FROM pawl.audit a WHERE a.tenant = l.tenant)`); stray != 0 {
		t.Errorf("%d tenants have another number of rows than of positions", stray)
	}
}

func TestHeadOfOneTenantsLogIsHeldAndOtherTenantsGoOn(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool, func(c *engine.Config) { c.Pipeline.LockWait = time.Hour })
	apply := func(tenant string, n int) transitions.Command {
		return transitions.Command{Tenant: tenant, Workflow: "loan", Transition: "apply", Key: fmt.Sprint(n), Payload: fmt.Appendf(nil, `{"number":"%d"}`, n)}
	}
	for _, tenant := range []string{"held", "free"} {
		if r, err := e.Submit(t.Context(), apply(tenant, 0)); err != nil || r.Status != 201 {
			t.Fatal(r.Status, err)
		}
	}
	tx := begin(t, pool)
	if _, err := tx.Exec(t.Context(), "SELECT 1 FROM pawl.log WHERE tenant = 'held' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	const waiting = 50
	answers := make(chan transitions.Reply, waiting)
	for n := range waiting {
		go func() {
			r, err := e.Submit(t.Context(), apply("held", n+1))
			answers <- transitions.Reply{Receipt: r, Err: err}
		}()
	}
	// As long as they wait, thousands of others are done, two at a time.
	begun := time.Now()
	for n := range 1000 {
		cs := []transitions.Command{apply("free", 2*n+1), apply("free", 2*n+2)}
		for _, r := range e.SubmitMany(t.Context(), cs) {
			if r.Err != nil || r.Receipt.Status != 201 {
				t.Fatal(r.Receipt.Status, r.Err)
			}
		}
	}
	t.Logf("2,000 commands of another tenant in %v", time.Since(begun))
	select {
	case a := <-answers:
		t.Fatalf("a command whose log is held was answered: %+v, %v", a.Receipt, a.Err)
	default:
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range waiting {
		if a := <-answers; a.Err != nil || a.Receipt.Status != 201 {
			t.Errorf("after the release: status %d, %v", a.Receipt.Status, a.Err)
		}
	}
	for tenant, want := range map[string]int{"held": waiting + 1, "free": 2001} {
		v, err := e.Verify(t.Context(), tenant, uuid.Nil)
		if err != nil || len(v.Broken) > 0 || v.Entries != int64(want) {
			t.Errorf("%s: %+v, %v", tenant, v, err)
		}
	}
}

func TestTransitionUnderImmediateConstraintsKeepsItsEvent(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := newEngine(t, pool)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
			return err
		}
		submitTx(t, e, tx, transitions.Command{Workflow: "loan", Transition: "apply", Key: "1", Payload: []byte(`{"number":"1","amount":5}`)})
		submitTx(t, e, tx, transitions.Command{Workflow: "loan", Transition: "pay", BusinessKey: "1", Key: "2", Payload: []byte(`{"amount":5}`)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f := e.Follow("", 0)
	defer f.Close()
	batch, err := f.Poll(t.Context())
	if err != nil || len(batch.Events) != 3 || batch.Last != 2 {
		t.Errorf("%d events up to %d, %v; want 3 up to 2", len(batch.Events), batch.Last, err)
	}
}

// The pipeline's own settings would make the user's queries slow or fail.
func TestHookRunsWithTheRolesOwnSettings(t *testing.T) {
	t.Parallel()
	pool := database(t)
	names := []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "plan_cache_mode", "lock_timeout", "statement_timeout"}
	want, got := map[string]string{}, map[string]string{}
	read := func(ctx context.Context, q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	}, into map[string]string) error {
		for _, name := range names {
			var value string
			if err := q.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
				return err
			}
			into[name] = value
		}
		return nil
	}
	if err := read(t.Context(), pool, want); err != nil {
		t.Fatal(err)
	}
	look := engine.InTx(workflow.Start("look", "seen", none), func(ctx context.Context, tx pgx.Tx, _ loan, _ workflow.None) error {
		return read(ctx, tx, got)
	})
	w := workflow.Define("looker", 1, look).Final("seen")
	e := newEngine(t, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{w} })
	if r, err := e.Submit(t.Context(), transitions.Command{Workflow: "looker", Transition: "look", Key: "1"}); err != nil || r.Status != 201 {
		t.Fatal(r.Status, err)
	}
	for _, name := range names {
		if got[name] != want[name] {
			t.Errorf("%s is %s; the role has %s", name, got[name], want[name])
		}
	}
}
