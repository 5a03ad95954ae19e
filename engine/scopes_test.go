package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// recorded are the attempts by scope that the database has.
func recorded(t *testing.T, e *engine.Engine, tenant string) string {
	t.Helper()
	k, err := e.Admin().Keys(t.Context(), tenant)
	require.NoError(t, err)
	assert.Falsef(t, len(k.Recorded) > 0 && (k.RecordedSince.IsZero() || k.RecordedSince.After(k.At)), "recorded since %v", k.RecordedSince)
	return fmt.Sprintf("%+v", k.Recorded)
}

func TestSuppressionSurvivesRestarts(t *testing.T) {
	t.Parallel()
	pool := database(t)
	pack := func(e *engine.Engine, tenant, scope string, times int) {
		for range times {
			submit(t, e, transitions.Command{Tenant: tenant, Workflow: "crate", Transition: "pack", Key: "k",
				Options: transitions.Options{Scope: scope}})
		}
	}
	one, other := newEngine(t, pool, running(crates(1))), newEngine(t, pool, running(crates(1)))
	pack(one, "a", "", 3)
	pack(other, "a", "", 2)
	pack(other, "b", "dock 4", 2)
	one.Stop(context.Background())
	other.Stop(context.Background())
	later := newEngine(t, pool, running(crates(1)))
	assert.Empty(t, later.Admin().Scopes(""), "it has answered nothing, and counts")
	crate := inspect.ScopeCount{Tenant: "a", Scope: "crate:pack", New: 1, Replayed: 4}
	dock := inspect.ScopeCount{Tenant: "b", Scope: "dock 4", Named: true, New: 1, Replayed: 1}
	got, want := recorded(t, later, ""), fmt.Sprintf("%+v", []inspect.ScopeCount{crate, dock})
	assert.Truef(t, got == want, "got  %s\nwant %s", got, want)
	if got, want := recorded(t, later, "b"), fmt.Sprintf("%+v", []inspect.ScopeCount{dock}); got != want {
		t.Errorf("of a tenant: got  %s\nwant %s", got, want)
	}
	pack(later, "a", "", 2)
	later.Stop(context.Background())
	crate.Replayed += 2
	if got, want := recorded(t, later, "a"), fmt.Sprintf("%+v", []inspect.ScopeCount{crate}); got != want {
		t.Errorf("of two days of work: got  %s\nwant %s", got, want)
	}
	exec(t, pool, "UPDATE pawl.scope_day SET day = day - 31")
	assert.Equal(t, "[]", recorded(t, later, ""), "a month ago")
}
