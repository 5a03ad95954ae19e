package pawltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestPostgresHasTheTablesAndNothingInThem(t *testing.T) {
	t.Parallel()
	one, other := pawltest.Postgres(t), pawltest.Postgres(t)
	_, err := one.Exec(t.Context(), `INSERT INTO pawl.log (tenant, head) VALUES ('t', 1)`)
	require.NoError(t, err)
	var n int
	err = other.QueryRow(t.Context(), `SELECT count(*) FROM pawl.log`).Scan(&n)
	assert.Truef(t, err == nil && n == 0, "another test's database has %d rows, %v", n, err)
}

// The engine runs real activities, as it does in a service, and ends with its
// test.
func TestEngineRunsTheWorkflows(t *testing.T) {
	t.Parallel()
	e := pawltest.Engine(t, workflow.Define("order", 1,
		workflow.Start("place", Placed, func(_ *workflow.Call, o *Order, c Cart) error { o.Total = c.Total; return nil }),
		workflow.Do("pay", workflow.From(Placed), Paying, Paid, func(_ context.Context, a *workflow.Attempt, _ Order, _ Card) (string, error) {
			return "ch-" + a.Key, nil
		}, func(_ *workflow.Call, o *Order, id string) error { o.Charge = id; return nil }).
			OrElse(Unpaid, func(*workflow.Call, *Order, workflow.Failure) error { return nil }),
	).Final(Paid, Unpaid))
	placed, err := e.Submit(t.Context(), transitions.Command{Workflow: "order", Transition: "place", Key: "k", Payload: []byte(`{"total":5}`)})
	require.NoError(t, err)
	accepted, err := e.Submit(t.Context(), transitions.Command{Instance: placed.Instance, Transition: "pay", Key: "k"})
	require.Truef(t, err == nil && accepted.Status == 202, "got %+v, %v", accepted, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := e.Await(ctx, transitions.Ref{Scope: accepted.Record.Scope, Key: "k"})
	require.Truef(t, err == nil && r.Status == 200, "got %+v, %v", r, err)
	inst, err := e.Read().Instance(t.Context(), "", placed.Instance)
	assert.Truef(t, err == nil && inst.State == Paid, "got %+v, %v", inst, err)
}
