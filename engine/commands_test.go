package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// ofAll reads all pages of a list of commands.
func ofAll(t *testing.T, e *engine.Engine, f inspect.CommandFilter) (list []transitions.Record, pages int) {
	t.Helper()
	for {
		page, err := e.Admin().Commands(t.Context(), f)
		require.NoError(t, err)
		list, f.After = append(list, page.Commands...), page.Next
		if pages++; !page.More {
			return list, pages
		}
		require.Truef(t, len(page.Commands) <= f.Limit && pages <= 10_000,
			"%+v: page %d has %d and goes on at %+v", f, pages, len(page.Commands), page.Next)
	}
}

// bareEngine is one that works at nothing.
func bareEngine(t *testing.T, pool *pgxpool.Pool) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Config{Pool: pool, Workflows: []workflow.Source{loans(1)}})
	require.NoError(t, err)
	t.Cleanup(func() { e.Stop(context.Background()) })
	return e
}

// The list of each kind has as many commands as is counted of it, each once, however long its pages are.
func TestEveryNumberOfCommandsHasAListOfThem(t *testing.T) {
	t.Parallel()
	pool := database(t)
	population(t, pool)
	waits := "status, phase, attempt, run_at"
	inFlightRows(t, pool, 3, "a", waits+", paused", `'pending', 'scheduled', 0, now() - interval '1 hour', 'workflow:loan'`)
	inFlightRows(t, pool, 2, "b", waits+", paused", `'pending', 'scheduled', 0, now() - interval '1 hour', 'workflow:loan'`)
	inFlightRows(t, pool, 2, "a", waits, `'failed_retryable', 'scheduled', 0, now() - interval '1 hour'`)
	e := bareEngine(t, pool)
	for _, tenant := range []string{"a", "b", "nobody"} {
		k, err := e.Admin().Keys(t.Context(), tenant)
		require.NoError(t, err)
		want := map[inspect.CommandKind]int64{inspect.CommandsScheduled: k.Scheduled, inspect.CommandsDue: k.Due, inspect.CommandsStale: k.Stale,
			inspect.CommandsLapsed: k.Lapsed, inspect.CommandsStuck: k.Stuck}
		for _, s := range k.Statuses[:3] {
			want[inspect.CommandKind(s.Status)] = s.Count
			want[inspect.CommandsAll] += s.Count
		}
		for kind, n := range want {
			for _, limit := range []int{1, 2, 100} {
				list, _ := ofAll(t, e, inspect.CommandFilter{Tenant: tenant, Kind: kind, Limit: limit})
				seen := map[string]bool{}
				for _, r := range list {
					seen[r.Scope+"\n"+r.Key] = true
				}
				assert.Truef(t, len(list) == int(n) && len(seen) == len(list),
					"of %s %q by %d: %d commands, %d of them unlike, of %d", tenant, kind, limit, len(list), len(seen), n)
			}
		}
	}
}

// Many at one moment are read page after page, and of those that are not selected a page looks at a bounded number.
func TestAPageOfCommandsIsBoundedAndNoneIsLost(t *testing.T) {
	t.Parallel()
	pool := database(t)
	at := "timestamptz '2099-01-01'"
	inFlightRows(t, pool, 11_000, "a", "status, phase, attempt, run_at", "'pending', 'scheduled', 0, "+at)
	inFlightRows(t, pool, 3, "a", "status, phase, attempt, run_at", "'failed_retryable', 'scheduled', 1, "+at+" + interval '1 s'")
	inFlightRows(t, pool, 10_500, "a", "status, phase, attempt, run_at, paused", "'pending', 'scheduled', 0, now(), 'workflow:loan'")
	inFlightRows(t, pool, 2, "b", "status, phase, attempt, run_at, paused", "'pending', 'scheduled', 0, now(), 'workflow:loan'")
	e := bareEngine(t, pool)
	list, pages := ofAll(t, e, inspect.CommandFilter{Tenant: "a", Kind: inspect.CommandsScheduled, Limit: 1000})
	assert.Truef(t, len(list) == 11_003 && pages == 12, "%d commands on %d pages", len(list), pages)
	list, pages = ofAll(t, e, inspect.CommandFilter{Tenant: "a", Kind: inspect.CommandsRetryable, Limit: 2})
	assert.Truef(t, len(list) == 3 && pages >= 3 && pages <= 6, "%d commands on %d pages", len(list), pages)
	list, _ = ofAll(t, e, inspect.CommandFilter{Tenant: "b", Kind: inspect.CommandsDue, Limit: 100})
	assert.Len(t, list, 2, "commands")
	list, _ = ofAll(t, e, inspect.CommandFilter{Tenant: "a", Kind: inspect.CommandsDue, Limit: 1000})
	assert.Len(t, list, 10_500, "commands")
}

func TestAListOfCommandsSaysWhatItWasAskedFor(t *testing.T) {
	t.Parallel()
	e := newEngine(t, database(t), flows(fares()), func(c *engine.Config) { c.Workflows = append(c.Workflows, loans(1)) })
	submit(t, e, applied("L-1", 100))
	later := on("pay", "L-1", "later", 100, "")
	later.Reason, later.NotBefore = "salary", time.Now().Add(time.Hour)
	submit(t, e, later)
	page, err := e.Admin().Commands(t.Context(), inspect.CommandFilter{Kind: inspect.CommandsScheduled, Workflow: "loan"})
	require.Truef(t, err == nil && !page.More && len(page.Commands) == 1, "%+v, %v", page, err)
	r := page.Commands[0]
	assert.Truef(t, r.Reason == "salary" && r.BusinessKey == "L-1" && r.Transition == "pay" && r.Phase == transitions.Scheduled &&
		!r.RunAt.IsZero() && r.Request == nil && r.Instance == loanID("L-1"), "%+v", r)
	page, err = e.Admin().Commands(t.Context(), inspect.CommandFilter{Workflow: "fare"})
	assert.Truef(t, err == nil && len(page.Commands) == 0, "of another workflow: %+v, %v", page, err)
	for f, code := range map[inspect.CommandFilter]workflow.Code{{Kind: "succeeded"}: workflow.InvalidRequest,
		{Workflow: "x"}:   workflow.WorkflowNotFound,
		{Tenant: "a\x00"}: workflow.InvalidRequest} {
		wantCode(t, errOf(e.Admin().Commands(t.Context(), f)), code)
	}
}
