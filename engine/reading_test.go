package engine_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// An engine that only reads follows what others commit, takes no commands, and leaves no trace in the database.
func TestAnEngineThatReadsWritesNothing(t *testing.T) {
	t.Parallel()
	pool := database(t)
	goOn := make(chan struct{})
	own := []workflow.Source{loans(1, collecting(goOn))}
	reads, err := engine.New(engine.Config{Pool: pool, Workflows: own, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer reads.Stop(context.Background())
	require.NoError(t, reads.StartReading(t.Context()))
	before := rowCounts(t, pool)
	wantCode(t, errOf(reads.Submit(t.Context(), applied("L-1", 100))), workflow.ShuttingDown)
	wantMore(t, pool, before, nil)
	assert.Equal(t, 0, query[int](t, pool, "SELECT count(*) FROM pawl.definition"), "definitions are written down")

	node := newEngine(t, pool, func(c *engine.Config) { c.Workflows = own })
	f := reads.Read().Follow("", 0)
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	submit(t, node, applied("L-1", 100))
	batch, err := f.Next(ctx)
	assert.Truef(t, err == nil && len(batch.Events) != 0 && batch.Events[0].Transition == "apply", "%+v, %v", batch, err)
	receipt := submit(t, node, on("collect", "L-1", "c", 100, ""))
	close(goOn)
	r, err := reads.Await(ctx, transitions.Ref{Scope: receipt.Record.Scope, Key: "c"})
	assert.Truef(t, err == nil && r.Err() == nil, "%+v, %v", r, err)
}
