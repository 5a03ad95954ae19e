package pawltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestPostgresHasTheTablesAndNothingInThem(t *testing.T) {
	t.Parallel()
	one, other := pawltest.Postgres(t), pawltest.Postgres(t)
	if _, err := one.Exec(t.Context(), `INSERT INTO pawl.log (tenant, head) VALUES ('t', 1)`); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := other.QueryRow(t.Context(), `SELECT count(*) FROM pawl.log`).Scan(&n); err != nil || n != 0 {
		t.Errorf("another test's database has %d rows, %v", n, err)
	}
}

// The engine runs real activities, as it does in a service, and ends with its
// test.
func TestEngineRunsTheWorkflows(t *testing.T) {
	t.Parallel()
	e := pawltest.Engine(t, workflow.Define("order", 1,
		workflow.Start("place", Placed, func(_ *workflow.Call, o *Order, c Cart) error { o.Total = c.Total; return nil }),
		workflow.Do("pay", workflow.From(Placed), Paying, Paid,
			func(_ context.Context, a *workflow.Attempt, _ Order, _ Card) (string, error) {
				return "ch-" + a.Key, nil
			},
			func(_ *workflow.Call, o *Order, id string) error { o.Charge = id; return nil }).
			OrElse(Unpaid, func(*workflow.Call, *Order, workflow.Failure) error { return nil }),
	).Final(Paid, Unpaid))
	placed, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Transition: "place", Key: "k", Payload: []byte(`{"total":5}`)})
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := e.Submit(t.Context(), transitions.Command{Instance: placed.Instance, Transition: "pay", Key: "k"})
	if err != nil || accepted.Status != 202 {
		t.Fatalf("got %+v, %v", accepted, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := e.Await(ctx, transitions.Ref{Scope: accepted.Record.Scope, Key: "k"}); err != nil || r.Status != 200 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if inst, err := e.Read().Instance(t.Context(), "", placed.Instance); err != nil || inst.State != Paid {
		t.Errorf("got %+v, %v", inst, err)
	}
}
