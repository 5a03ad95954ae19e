package relay

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// probed lists the only indexes that a statement may use, with the columns that it must bind.
var probed = map[string][]string{
	"outbox_sink_pkey":    {"name = "},
	"outbox_cursor_pkey":  {"tenant = ", "sink = "},
	"outbox_cursor_moved": {"sink = ", "revision > "},
	"outbox_dead_pkey":    {"tenant = ", "sink = ", "position = ", "type = "},
	"outbox_dead_list":    {"sink = ", "status = "},
	"outbox_pkey":         {"tenant = ", "position "},
	"audit_pkey":          {"tenant = ", "instance = ", "version = "},
	"instance_pkey":       {"tenant = ", "id = "},
	"log_pkey":            {"tenant "},
}

// week matches the suffix of the outbox's partitions.
var week = regexp.MustCompile(`_\d{4}w\d\d`)

// A plan that a connection made for an empty table stays in use while the table grows, so
// statements of a batch must have the same plan in both cases. The others are planned each time and
// must not scan a full table of events.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	t.Run("empty", func(t *testing.T) { explainBatch(t, pool) })
	execAll(t, pool, "VACUUM ANALYZE")
	t.Run("empty and vacuumed", func(t *testing.T) { explainBatch(t, pool) })

	// 2,000 tenants, three of them with a backlog, and dead letters of all kinds.
	execAll(t, pool, `
INSERT INTO pawl.outbox_sink (name, token, claimed_by, claimed_at, locked_until)
SELECT 's' || n, 1, 'n', now(), now() + interval '1 hour' FROM generate_series(1, 3) n;
INSERT INTO pawl.log SELECT 't' || n, 50 FROM generate_series(1, 2000) n;
INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
SELECT 't' || t, p, 'e', 0, 'w', md5(t || ' ' || p % 10)::uuid, p, 'x', 's', now()
FROM generate_series(1, 2000) t, generate_series(1, 50) p;
INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
SELECT DISTINCT tenant, instance, 'w', 1, 's', 5, '{}'::jsonb, true, sha256(''), now(), now() FROM pawl.outbox;
INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at)
SELECT l.tenant, s.name, CASE WHEN l.tenant IN ('t1', 't2', 't3') THEN 20 ELSE 50 END, now() FROM pawl.log l, pawl.outbox_sink s;
INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at,
	updated_at, changed_by)
SELECT o.tenant, s.name, o.position, o.type, o.ordinal, o.workflow, o.instance,
	(ARRAY['waiting', 'queued', 'redriven', 'skipped'])[1 + position % 4],
	'temporary', 'no', 1, now(), now(), 'ann' FROM pawl.outbox o, pawl.outbox_sink s WHERE position > 30;`)
	t.Run("full, with the statistics of the empty ones", func(t *testing.T) {
		explainBatch(t, pool)
	})
	execAll(t, pool, "ANALYZE")
	t.Run("full", func(t *testing.T) {
		explainBatch(t, pool)
		explainOthers(t, pool)
	})
}

// explainBatch checks the cached plans of the statements of a batch.
func explainBatch(t *testing.T, pool *pgxpool.Pool) {
	for name, s := range map[string]struct {
		sql        string
		parameters int
	}{"keep": {renewSQL, 10}, "park": {insertDeadSQL, 13}, "change": {updateDeadSQL, 10}, "cursor": {cursorSQL, 6}, "moved": {movedSQL, 2},
		"rows":     {rowsSQL, 5},
		"deferred": {deferredSQL, 4}} {
		t.Run(name, func(t *testing.T) {
			for _, step := range pgtest.ExplainPrepared(t, pool, settings, s.sql, s.parameters) {
				check(t, step, nil)
			}
		})
	}
}

// explainOthers executes the other statements and checks what they read.
func explainOthers(t *testing.T, pool *pgxpool.Pool) {
	names, tokens := []string{"s1", "s2", "s3"}, []int64{1, 1, 1}
	one := inspect.DeadFilter{Sink: "s2", Status: inspect.DeadWaiting, Tenant: "t7"}
	all := inspect.DeadFilter{Sink: "s2", Status: inspect.DeadWaiting}
	few := []string{"log", "outbox_cursor", "outbox_sink"} // one row per tenant
	for name, s := range map[string]struct {
		sql   string
		args  []any
		whole []string // tables that may be scanned
	}{
		"oldest":                   {fromOldestSQL, []any{"s4", []string(nil)}, few},
		"poll":                     {pollSQL, []any{names, tokens, true, int64(5e6)}, few},
		"look up":                  {lookUpSQL, []any{names, []string{"t1", "t2", "t9"}}, []string{"outbox_sink"}},
		"pass":                     {scanSQL, []any{"s1", "t5", []string(nil), 100}, []string{"outbox_sink", "log"}},
		"pass of few":              {scanSQL, []any{"s1", "", []string{"t1", "t7"}, 100}, []string{"outbox_sink"}},
		"claim":                    {claimSQL, []any{"n", names, tokens, int64(5e6)}, few},
		"infos":                    {infosSQL, []any{""}, few},
		"infos of a tenant":        {infosSQL, []any{"t7"}, few},
		"nodes":                    {nodesSQL, []any{"t7"}, []string{"outbox_sink"}},
		"cursor of a tenant":       {cursorsSQL, []any{"s1", "t7", "", 100}, few},
		"cursors":                  {cursorsSQL, []any{"s1", "", "t5", 100}, few},
		"tenants":                  {tenantsSQL, []any{"s1", "waiting"}, nil},
		"status of one tenant's":   {statusSQL, append(argsOf(&one), statusBatch, "queued", "ann", "", "2100-01-01"), nil},
		"dead letters of a tenant": {deadSQL, append(argsOf(&one), "", uuid.Nil, 0, 0, 100), nil},
		"dead letters of all":      {deadSQL, append(argsOf(&all), "t5", uuid.Max, 50, 0, 100), nil},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(context.Background()) }() // discard changes
			for _, step := range pgtest.Explain(t, tx, "ANALYZE, ", s.sql, append([]any{pgx.QueryExecModeExec}, s.args...)...) {
				check(t, step, s.whole)
			}
		})
	}
}

// An old snapshot keeps all versions of a log's row; looking up its tenant reads the newest.
func TestLookUpReadsFewPagesWithOldSnapshot(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t)
	execAll(t, pool, "INSERT INTO pawl.outbox_sink (name) VALUES ('s'); SELECT pawl.advance('acme', 1)")
	snapshot, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = snapshot.Rollback(context.Background()) }()
	_, err = snapshot.Exec(t.Context(), "SELECT FROM pawl.log")
	require.NoError(t, err)
	execAll(t, pool, "DO $$ BEGIN FOR n IN 1..20000 LOOP PERFORM pawl.advance('acme', 1); END LOOP; END $$")
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	pages := 0
	for range 2 { // the first run fills the session's caches
		pages = pgtest.Pages(t, conn, lookUpSQL, pgx.QueryExecModeExec, []string{"s"}, []string{"acme"})
	}
	assert.Truef(t, pages <= 25, "it reads %d pages", pages)
}

func check(t *testing.T, p pgtest.Step, whole []string) {
	t.Helper()
	switch p.Type {
	case "Seq Scan":
		assert.Containsf(t, whole, p.Relation, "%s on", p.Type)
	case "Index Scan", "Index Only Scan", "Bitmap Index Scan":
		bound, ok := probed[week.ReplaceAllString(p.Index, "")]
		assert.Truef(t, ok, "it uses %s: %s", p.Index, p.Cond)
		for _, column := range bound {
			read := slices.ContainsFunc(whole, func(table string) bool { return p.Relation == table || p.Index == table+"_pkey" })
			assert.Falsef(t, !read && !strings.Contains(strings.ReplaceAll(p.Cond, `"`, ""), column),
				"%s of %s does not bind %s: %s", p.Type, p.Index, column, p.Cond)
		}
	}
}

func execAll(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
}
