package engine_test

import (
	"log/slog"
	"testing"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
)

// There is no schema pawl in the database, so a statement that is not qualified with the configured name fails.
func TestSchemaName_PauseAndResume(t *testing.T) {
	t.Parallel()
	const name = "shop_2"
	pool := pgtest.EmptyPool(t)
	if _, err := schema.Migrate(t.Context(), pool, name); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, ledgerSQL)
	var log testlog.Log
	e := newEngine(t, pool, func(c *engine.Config) { c.Schema, c.Log = name, slog.New(&log) })
	made := submit(t, e, applied("L-1", 10))
	for _, step := range []struct {
		action transitions.Action
		paused int
	}{{transitions.Pause, 1}, {transitions.Resume, 0}} {
		o := transitions.Operation{Action: step.action, Reason: "audit"}
		c := transitions.Command{Instance: made.Instance, Key: string(step.action), Actor: "olga"}
		if r, err := e.Admin().Operate(t.Context(), c, o); err != nil || r.Err() != nil {
			t.Fatalf("%s: %+v, %v", step.action, r, err)
		}
		list, _, err := e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{})
		if err != nil || len(list) != step.paused {
			t.Fatalf("after %s: %+v, %v", step.action, list, err)
		}
		for _, p := range list {
			if p.Actor != "olga" || p.Reason != "audit" || p.At.IsZero() {
				t.Errorf("the pause is listed as %+v", p)
			}
		}
	}
	if r := submit(t, e, on("pay", "L-1", "pay", 10, "")); r.Version != made.Version+3 {
		t.Errorf("after the resumption: %+v", r)
	}
	intact(t, e)
	if n := log.Count("does not exist"); n != 0 {
		t.Errorf("logged %q", log.List())
	}
}
