package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/relay"
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

func TestNodesSayWhatTheyKnowAndDo(t *testing.T) {
	t.Parallel()
	pool := database(t)
	asked, goOn := make(chan struct{}, 10), make(chan struct{})
	w := parcels(func(ctx context.Context, _ *workflow.Attempt) (track, error) {
		asked <- struct{}{}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return track{}, ctx.Err()
	})
	one := newEngine(t, pool, running(w, crates(2), crates(1)), sinks(relay.Sink{Name: "books", To: &receiver{}, Tenants: []string{"acme"}}))
	idle := newEngine(t, pool, running(crates(1)), func(c *engine.Config) { c.InFlight.Workers, c.Retention.Off = -1, true })
	defer close(goOn)
	for _, tenant := range []string{"", "", "acme"} {
		c := transitions.Command{Tenant: tenant, Workflow: "parcel", Transition: "pack", Key: tenant + "p"}
		r := submit(t, one, c)
		c.Transition, c.Instance, c.Key = "send", r.Instance, "s"
		submit(t, one, c)
	}
	for range 2 {
		await.Receive(t, "an attempt is made", asked)
	}
	var list []inspect.NodeInfo
	await.Eventually(t, "the first node does everything", func() bool {
		var err error
		list, err = idle.Admin().Nodes(t.Context(), "")
		require.NoError(t, err)
		return len(list) == 2 && len(list[0].Leads) == 1 && len(list[0].Sinks) == 1
	})
	n := list[0]
	assert.Truef(t, n.Leads[0] == "retention" && n.Sinks[0] == "books" && n.Leases == 2 && !n.AtLeast && n.Migrations == nil && n.Alive &&
		strings.Contains(n.Build, "pawl ") && !n.BegunAt.IsZero() && !n.SeenAt.Before(n.BegunAt), "%+v", n)
	want := []inspect.NodeVersion{{Workflow: "crate", Version: 1}, {Workflow: "crate", Version: 2},
		{Workflow: "parcel", Version: 1}}
	assert.Truef(t, len(n.Knowing) == 3 && n.Knowing[0] == want[0] && n.Knowing[1] == want[1] && n.Knowing[2] == want[2],
		"it knows %v", n.Knowing)
	if n := list[1]; n.Leads != nil || n.Sinks != nil || n.Leases != 0 || len(n.Knowing) != 1 {
		t.Errorf("the idle one: %+v", n)
	}
	for tenant, want := range map[string]struct {
		leases int64
		sinks  int
	}{"default": {1, 0}, "acme": {1, 1}, "nobody": {0, 0}} {
		list, err := one.Admin().Nodes(t.Context(), tenant)
		assert.Truef(t, err == nil && list[0].Leases == want.leases && len(list[0].Sinks) == want.sinks, "of %s: %+v, %v", tenant, list, err)
	}
	wantCode(t, errOf(one.Admin().Nodes(t.Context(), "\x00")), workflow.InvalidRequest)

	idle.Stop(t.Context())
	if list, err := one.Admin().Nodes(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("after one has stopped: %+v, %v", list, err)
	}
}
