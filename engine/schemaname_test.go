package engine_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
)

// The database has no schema pawl, so a statement that is not qualified with the configured name fails.
func TestSchemaName_PauseAndResume(t *testing.T) {
	t.Parallel()
	const name = "shop_2"
	pool := pgtest.EmptyPool(t)
	require.NoError(t, errOf(schema.Migrate(t.Context(), pool, name)))
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
		r, err := e.Admin().Operate(t.Context(), c, o)
		require.Truef(t, err == nil && r.Err() == nil, "%s: %+v, %v", step.action, r, err)
		list, _, err := e.Admin().PausedInstances(t.Context(), inspect.PausedFilter{})
		require.Truef(t, err == nil && len(list) == step.paused, "after %s: %+v, %v", step.action, list, err)
		for _, p := range list {
			assert.Truef(t, p.Actor == "olga" && p.Reason == "audit" && !p.At.IsZero(), "the pause is listed as %+v", p)
		}
	}
	r := submit(t, e, on("pay", "L-1", "pay", 10, ""))
	assert.Equalf(t, made.Version+3, r.Version, "after the resumption: %+v", r)
	intact(t, e)
	assert.Equalf(t, 0, log.Count("does not exist"), "logged %q", log.List())
}
