package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/metrics"
	"github.com/pawlhq/pawl/schema"
)

func TestMetrics_Golden(t *testing.T) {
	var b strings.Builder
	b.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
	for _, m := range metrics.Table() {
		kind := m.Type
		if m.Shared {
			kind += ", shared"
		}
		labels := ""
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, kind, labels, m.Help)
	}
	docs.Part(t, "docs/metrics.md", "metrics", b.String())
}

var (
	metricName = regexp.MustCompile(`\bpawl_[a-z_]+`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchorRef  = regexp.MustCompile(`\]\(#([a-z-]+)\)`)
	opsCall    = regexp.MustCompile("`pawl ((?:ops|verify|doctor|migrate|serve|keys|tickets|auth)[a-z -]*)")
)

func TestRunbooksNameKnownMetrics(t *testing.T) {
	text := page(t, "docs/operations.md")
	known := map[string]bool{}
	for _, m := range metrics.Table() {
		known[m.Name] = true
		if m.Type == "histogram" {
			known[m.Name+"_bucket"], known[m.Name+"_sum"], known[m.Name+"_count"] = true, true, true
		}
	}
	for _, name := range metricName.FindAllString(text, -1) {
		assert.Truef(t, known[name], "there is no metric %s", name)
	}
	anchors := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		anchors[strings.ReplaceAll(strings.ToLower(h[1]), " ", "-")] = true
	}
	for _, ref := range anchorRef.FindAllStringSubmatch(text, -1) {
		assert.Truef(t, anchors[ref[1]], "there is no section %q", ref[1])
	}
}

func TestCommandsOfOperatorsAreThere(t *testing.T) {
	calls := opsCall.FindAllStringSubmatch(page(t, "docs/operations.md"), -1)
	require.NotEqual(t, 0, len(calls), "no command is documented")
	for _, call := range calls {
		words, flags, _ := strings.Cut(call[1], " -")
		found, rest, err := cli.CommandLine().Find(strings.Fields(words))
		if err != nil || len(rest) > 0 {
			t.Errorf("there is no command %q: %v", call[1], err)
			continue
		}
		for i, flag := range strings.Fields(flags) {
			name, long := strings.CutPrefix(flag, "-")
			assert.Falsef(t, i == 0 && (long && found.Flag(name) == nil || !long && found.InheritedFlags().ShorthandLookup(flag) == nil &&
				found.Flags().ShorthandLookup(flag) == nil), "%q has no flag -%s", words, flag)
		}
	}
}

// plenty fills the tables, with something for every query to find.
const plenty = `
INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
SELECT 'default', gen_random_uuid(), 'w', 1, 's', 1, '{}', true, decode(repeat('00', 32), 'hex'), now(), now()
	FROM generate_series(1, 20000);
INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, version, actor, code, body, created_at,
	finished_at, expires_at)
SELECT tenant, 'w:' || id, 'k', chain, 'succeeded', 'w', 't', id, 1, 'a', 200, '{}', now(), now(), now() + interval '1 day'
	FROM pawl.instance;
UPDATE pawl.command SET expires_at = now() - interval '1 hour' WHERE (tenant, scope, key) IN (SELECT tenant, scope, key
	FROM pawl.command LIMIT 100);
INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, to_state, actor, payload, data, scope, key, at, hash)
SELECT tenant, id, 1, row_number() OVER (), 'w', 't', 's', 'a', '{}', '{}', 's', 'k', now(), chain FROM pawl.instance;
INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
SELECT tenant, position, 'w.t', 0, workflow, instance, 1, 't', 's', now() FROM pawl.audit;
INSERT INTO pawl.log (tenant, head) VALUES ('default', 20000);
INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at, phase, attempt,
	failures, revision,
	request, updated_at, run_at, claimed_by, claimed_at, locked_until, held_until, stuck)
SELECT 'default', 'in flight', v.status || n || v.phase || coalesce(stuck, ''), decode(repeat('00', 32), 'hex'), v.status, 'w', 't',
	gen_random_uuid(), 'a', now() - interval '1 hour', phase, n % 10,
	0, 0, '{}', now(), run_at, CASE WHEN v.status = 'processing' THEN 'n' END, CASE WHEN v.status = 'processing' THEN now() END, locked_until,
		held_until, stuck
FROM generate_series(1, 100) AS n, (VALUES
	('pending', 'working', now() - interval '1 minute', NULL::timestamptz, NULL::timestamptz, NULL),
	('processing', 'working', NULL, now() - interval '1 minute', NULL, NULL),
	('processing', 'sql', NULL, NULL, now() - interval '1 minute', NULL),
	('failed_retryable', 'working', NULL, NULL, NULL, 'unknown_outcome')) AS v(status, phase, run_at, locked_until, held_until, stuck);
INSERT INTO pawl.scope_day SELECT 'default', 'w:t', false, current_date - n, 5, 1, 0, 0, 0 FROM generate_series(0, 29) AS n;
INSERT INTO pawl.outbox_sink (name) VALUES ('crm');
INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at) VALUES ('default', 'crm', 19000, now());
INSERT INTO pawl.outbox_dead (tenant, sink, position, type, ordinal, workflow, instance, status, kind, failure, attempts, created_at,
	updated_at)
SELECT tenant, 'crm', position, type, ordinal, workflow, instance, 'waiting', 'permanent', 'no', 15, now(), now() FROM pawl.outbox
	WHERE position <= 1000;
INSERT INTO pawl.inbox_dead (tenant, consumer, message, hash, type, size, body, status, code, failure, deliveries, created_at, updated_at)
SELECT 'default', 'bank', n, decode(repeat('00', 32), 'hex'), '', 0, '', 'waiting', 'invalid_payload', 'no', 1, now(), now()
	FROM generate_series(1, 1000) AS n;`

// large are the tables that grow with the work.
var large = regexp.MustCompile(`Seq Scan on (command|instance|audit|outbox)(_\w*\d\w*)? `)

// Operators run these queries during incidents, so they must work and not read whole tables.
func TestOperatorQueries_Plans(t *testing.T) {
	pool := pgtest.Pool(t)
	if _, err := schema.Migrate(t.Context(), pool, schema.Default); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), pool.Config().ConnString())
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	queries := blocks(t, page(t, "docs/queries.md"), "sql")
	for _, q := range queries {
		if _, err := rowsOf(t, conn, q); err != nil {
			t.Errorf("on empty tables: %v\n%s", err, q)
		}
	}
	_, err = conn.Exec(t.Context(), plenty+"ANALYZE", pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	for _, q := range queries {
		n, err := rowsOf(t, conn, q)
		if err != nil {
			t.Errorf("on full tables: %v\n%s", err, q)
			continue
		}
		assert.Falsef(t, n == 0 && !strings.Contains(q, "pg_stat_activity") && !strings.Contains(q, "pg_inherits"),
			"finds nothing:\n%s", q)
		plan, err := planOf(t, conn, q)
		require.NoError(t, err)
		assert.Equalf(t, "", large.FindString(plan), "%s\n%s", q, plan)
	}
}

// rowsOf runs a query that may only read.
func rowsOf(t *testing.T, conn *pgx.Conn, sql string) (n int, err error) {
	t.Helper()
	err = pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), sql)
		if err != nil {
			return err
		}
		for rows.Next() {
			n++
		}
		return rows.Err()
	})
	return n, err
}

func planOf(t *testing.T, conn *pgx.Conn, sql string) (string, error) {
	t.Helper()
	rows, err := conn.Query(t.Context(), "EXPLAIN "+sql)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}
