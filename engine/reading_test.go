package engine_test

import (
	"context"
	"log/slog"
	"testing"

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
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Stop(context.Background())
	if err := reads.StartReading(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := rowCounts(t, pool)
	_, err = reads.Submit(t.Context(), applied("L-1", 100))
	wantCode(t, err, workflow.ShuttingDown)
	wantMore(t, pool, before, nil)
	if n := query[int](t, pool, "SELECT count(*) FROM pawl.definition"); n != 0 {
		t.Errorf("%d definitions are written down", n)
	}

	node := newEngine(t, pool, func(c *engine.Config) { c.Workflows = own })
	f := reads.Read().Follow("", 0)
	defer f.Close()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	submit(t, node, applied("L-1", 100))
	if batch, err := f.Next(ctx); err != nil || len(batch.Events) == 0 || batch.Events[0].Transition != "apply" {
		t.Errorf("%+v, %v", batch, err)
	}
	receipt := submit(t, node, on("collect", "L-1", "c", 100, ""))
	close(goOn)
	if r, err := reads.Await(ctx, transitions.Ref{Scope: receipt.Record.Scope, Key: "c"}); err != nil || r.Err() != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
