package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// poolWith is a pool on the same database, whose statements the tracer hears of.
func poolWith(t *testing.T, pool *pgxpool.Pool, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	config.ConnConfig.Tracer = tracer
	traced, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(traced.Close)
	return traced
}

// told remembers the statements of lists and counts.
type told struct {
	mu    sync.Mutex
	begin string // what begins their transaction
	list  []pgx.TraceQueryStartData
}

func (q *told) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	if strings.HasPrefix(data.SQL, "BEGIN") {
		if strings.HasPrefix(data.SQL, "BEGIN ISOLATION LEVEL REPEATABLE READ") {
			q.begin = data.SQL
		}
		return ctx
	}
	for _, part := range []string{" AS entries", " AS kinds", "kinds AS ", "RECURSIVE child", " AS leased", "c.request", " AS looked",
		"WHERE paused AND", "SET LOCAL"} {
		if strings.Contains(data.SQL, part) {
			q.list = append(q.list, data)
			break
		}
	}
	return ctx
}

func (q *told) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (q *told) take() []pgx.TraceQueryStartData {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

func wantRanges(t *testing.T, pool *pgxpool.Pool, last *told, name string) {
	t.Helper()
	statements := last.take()
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{BeginQuery: last.begin})
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	assert.NotEqualf(t, 0, len(statements), "%s asked nothing", name)
	for _, s := range statements {
		if strings.HasPrefix(s.SQL, "SET LOCAL") { // what is planned after it is planned under it
			_, err := tx.Exec(t.Context(), s.SQL)
			require.NoError(t, err)
			continue
		}
		for _, step := range pgtest.Explain(t, tx, "ANALYZE, ", s.SQL, s.Args...) {
			assert.Truef(t, step.Type != "Seq Scan" && (step.Type != "Index Scan" || step.Cond != ""),
				"%s: %s of %s, %v\n%s", name, step.Type, step.Relation, s.Args, s.SQL)
			// Of attributes it may have to read who has them, but none of the rows.
			assert.Falsef(t, step.Rows > 10_001 && step.Index != "instance_attributes",
				"%s: %s %s has %d rows, %v\n%s", name, step.Type, step.Index, int(step.Rows), s.Args, s.SQL)
		}
	}
}

// Every statement of a read finds what it reads by an index, whatever the planner believes of the tables, and puts no
// more in order than a page looks at. What is planned for a table that is empty is planned again when it is not.
func TestReadsAreRangesOfIndexes(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "ALTER TABLE pawl.command SET (autovacuum_enabled = false)")
	exec(t, pool, "ALTER TABLE pawl.instance SET (autovacuum_enabled = false)")
	last := &told{}
	sources := []workflow.Source{loans(1), gifts(), kid, family()}
	works := newEngine(t, pool, flows(sources...))
	parent := bear(t, works, 2, 0, 3)
	works.Stop(t.Context())
	e, err := engine.New(engine.Config{Pool: poolWith(t, pool, last), Workflows: sources})
	require.NoError(t, err)
	defer e.Stop(context.Background())
	explain := func(t *testing.T) {
		for name, read := range indexedReads(t, e, parent) {
			last.take()
			require.NoError(t, read(), name)
			wantRanges(t, pool, last, name)
		}
	}
	t.Run("empty", explain)
	exec(t, pool, "VACUUM ANALYZE pawl.instance, pawl.command")
	seedTimes(t, pool, 40_000)
	exec(t, pool, "UPDATE pawl.instance SET paused = true WHERE ctid IN (SELECT ctid FROM pawl.instance LIMIT 3000)")
	waits, works2 := "status, phase, attempt, run_at", "status, phase, attempt, claimed_by, claimed_at, locked_until"
	for _, tenant := range []string{"a", "b"} {
		for _, row := range [][2]string{
			{waits, `'pending', 'scheduled', 0, now() + generate_series * interval '1 hour'`},
			{waits, `'pending', 'scheduled', 0, now() - generate_series * interval '1 s'`},
			{waits, `'failed_retryable', 'working', 2, now() - generate_series * interval '1 s'`},
			{works2, `'processing', 'working', 1, 'n', now(), now() - generate_series * interval '1 s'`},
			{strings.Replace(works2, "locked", "held", 1), `'processing', 'sql', 1, 'ann', now(), now() - generate_series * interval '1 s'`},
			{"status, phase, attempt, stuck", `'failed_retryable', 'working', 3, 'ask_person'`},
			{"status, phase, attempt, given_up_at", `'failed_retryable', 'sql', 1, now() + generate_series * interval '1 s'`},
			{waits + ", paused", `'pending', 'scheduled', 0, now() - interval '1 hour', 'workflow:loan'`},
		} {
			inFlightRows(t, pool, 3000, tenant, row[0], row[1])
		}
	}
	finished(t, pool, 40_000, "succeeded", "now() + interval '1 day'")
	t.Run("full, with the statistics of the empty one", explain)
	exec(t, pool, "VACUUM ANALYZE pawl.instance, pawl.command")
	t.Run("full", explain)
}

// indexedReads are reads by all that they can select, with their second pages.
func indexedReads(t *testing.T, e *engine.Engine, parent uuid.UUID) map[string]func() error {
	reads := map[string]func() error{}
	yes := true
	filters := map[string]inspect.Filter{
		"everything":                 {},
		"open":                       {Open: &yes},
		"a workflow in a state":      {Workflow: "loan", States: []workflow.State{"asked"}},
		"some states":                {States: []workflow.State{"asked", "open"}},
		"a definition":               {Workflow: "loan", Definition: 2},
		"an attribute":               {Attributes: map[string]string{"customer": "c-1"}},
		"an attribute in a state":    {Workflow: "loan", States: []workflow.State{"open"}, Attributes: map[string]string{"customer": "c-1"}},
		"an attribute of half":       {Attributes: map[string]string{"region": "r-1"}},
		"a business key":             {Workflow: "loan", BusinessKey: "L-1"},
		"created before":             {CreatedBefore: dawn.Add(time.Hour)},
		"created late":               {CreatedAfter: dawn.Add(39_000 * time.Minute)},
		"a prefix of an attribute":   {Workflow: "loan", Ranges: map[string]inspect.Range{"customer": {Prefix: "c-9"}}},
		"a range of an attribute":    {Ranges: map[string]inspect.Range{"customer": {From: "c-5", Before: "c-6"}}},
		"open and updated in a time": {Open: &yes, UpdatedAfter: dawn.Add(time.Hour), UpdatedBefore: dawn.Add(2 * time.Hour)},
	}
	for name, f := range filters {
		for _, order := range []inspect.Order{inspect.ByCreation, inspect.ByUpdate} {
			f.Order, f.Limit = order, 10
			reads[fmt.Sprintf("%s, order %d", name, order)] = func() error {
				page, err := e.Read().Instances(t.Context(), f)
				if err != nil || !page.More {
					return err
				}
				second := f
				second.After = page.Next
				return errOf(e.Read().Instances(t.Context(), second))
			}
		}
	}
	some, half := map[string]string{"customer": "c-1"}, map[string]string{"region": "r-1"}
	for _, f := range []inspect.CountFilter{{}, {Tenant: "default"}, {Tenant: "default", Workflow: "loan", Open: &yes},
		{Tenant: "default", Attributes: some}, {Tenant: "default", Workflow: "loan", Attributes: half}, {Attributes: some}} {
		reads[fmt.Sprintf("counts of %+v", f)] = func() error { return errOf(e.Read().Counts(t.Context(), f)) }
	}
	for _, f := range []inspect.ChildFilter{{}, {Open: &yes}, {Stuck: &yes}, {Limit: 1},
		{After: inspect.ChildPlace{Version: 2, Ordinal: 1}}} {
		f.Parent = parent
		reads[fmt.Sprintf("children of %+v", f)] = func() error { return errOf(e.Read().Children(t.Context(), f)) }
	}
	for _, tenant := range []string{"", "default"} {
		reads["nodes of "+tenant] = func() error { return errOf(e.Admin().Nodes(t.Context(), tenant)) }
	}
	for _, f := range []inspect.PausedFilter{{Limit: 10}, {Workflow: "loan", Limit: 10},
		{Limit: 10, After: inspect.PausedInstance{Workflow: "loan", Instance: uuid.Max}}} {
		reads[fmt.Sprintf("paused %+v", f)] = func() error {
			_, _, err := e.Admin().PausedInstances(t.Context(), f)
			return err
		}
	}
	for _, kind := range append([]inspect.CommandKind{inspect.CommandsAll}, inspect.CommandKinds...) {
		for _, name := range []string{"", "loan"} {
			f := inspect.CommandFilter{Tenant: "a", Kind: kind, Workflow: name, Limit: 700}
			reads[fmt.Sprintf("%s commands of %q", kind, name)] = func() error {
				page, err := e.Admin().Commands(t.Context(), f)
				if err != nil || !page.More {
					return err
				}
				second := f
				second.After = page.Next
				return errOf(e.Admin().Commands(t.Context(), second))
			}
		}
	}
	reads["a command"] = func() error {
		err := errOf(e.Read().Command(t.Context(), transitions.Ref{Tenant: "a", Scope: "s", Key: "k"}))
		if workflow.CodeOf(err) == workflow.CommandNotFound {
			return nil
		}
		return err
	}
	return reads
}
