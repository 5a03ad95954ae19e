package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// However much of one tenant's SQL waits, a worker is left for another tenant's, and one for what has none.
func TestSlowSQLOfOneTenantHoldsUpNoOther(t *testing.T) {
	pool := database(t)
	begun, gate := make(chan struct{}, 100), make(chan struct{})
	slow := func(ctx context.Context, tx pgx.Tx, d loan, p payment) error {
		if p.Do == "wait" {
			begun <- struct{}{}
			select {
			case <-gate:
			case <-ctx.Done():
			}
		}
		return nil
	}
	e := newEngine(t, pool, func(c *engine.Config) {
		c.Pipeline.RetryWorkers, c.Pipeline.LockWait, c.Pipeline.HookTimeout = 4, await.Patience, await.Patience
		c.Workflows = []workflow.Source{loans(1, engine.InTx(workflow.On("slow", workflow.From("open"), workflow.Stay, pay).Or("settled"), slow))}
	})
	const many = 20
	for i := range many {
		submit(t, e, applied(fmt.Sprint("L-", i), 100))
	}
	others := func(c transitions.Command) transitions.Command { c.Tenant = "other"; return c }
	id := submit(t, e, others(applied("O-1", 100))).Instance
	submit(t, e, others(applied("O-2", 100)))

	answers := make(chan error, many)
	for i := range many {
		go func() {
			_, err := e.Submit(context.WithoutCancel(t.Context()), on("slow", fmt.Sprint("L-", i), "s", 1, "wait"))
			answers <- err
		}()
	}
	for range 2 { // as many as one tenant has at once
		await.Receive(t, "the slow SQL has begun", begun)
	}
	await.Eventually(t, "all others of it wait", func() bool { return e.Admin().Stats().Aside >= many })

	// With SQL of its own, and a plain one whose instance was held.
	submit(t, e, others(on("slow", "O-2", "s", 1, "")))
	tx := begin(t, pool)
	require.NoError(t, errOf(tx.Exec(t.Context(), "SELECT 1 FROM pawl.instance WHERE id = $1 FOR UPDATE", id)))
	aside := e.Admin().Stats().Aside
	paid := make(chan error, 1)
	go func() {
		_, err := e.Submit(context.WithoutCancel(t.Context()), others(on("pay", "O-1", "p", 1, "")))
		paid <- err
	}()
	await.Eventually(t, "it waits for the instance", func() bool { return e.Admin().Stats().Aside > aside })
	rollback(t, tx)
	assert.NoError(t, await.Receive(t, "the plain command", paid))
	n := len(begun)
	assert.Truef(t, n <= 0, "%d of one tenant's run at once, where 2 may", 2+n)
	close(gate)
	for range many {
		assert.NoError(t, await.Receive(t, "the slow SQL", answers))
	}
}
