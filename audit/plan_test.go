package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// What reads an instance's entries looks at these alone, in the order of the
// index. A table that is known to be empty is scanned, which is as well: the
// statements are planned whenever they run.
func TestEntriesAreReadByTheirKeyOnEmptyAndOnFullTables(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t) // prepared statements are a session's
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	const id = "00000000-0000-8000-8000-000000000001"
	check := func(t *testing.T) {
		for name, s := range map[string]struct{ sql, types, values string }{
			"history": {historySQL, "text, uuid, bigint, bigint", "'t', '" + id + "', 5, 100"},
			"at":      {atSQL, "text, uuid, bigint", "'t', '" + id + "', 5"},
			"as of":   {asOfSQL, "text, uuid, timestamptz", "'t', '" + id + "', '2026-01-02'"},
		} {
			for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
				exec("SET plan_cache_mode = " + mode)
				exec(fmt.Sprintf("PREPARE explained (%s) AS %s", s.types, s.sql))
				steps := pgtest.Explain(t, conn, "", fmt.Sprintf("EXECUTE explained(%s)", s.values))
				exec("DEALLOCATE explained")
				if steps[0].Type == "Limit" {
					steps = steps[1:]
				}
				if p := steps[0]; p.Type != "Index Scan" || p.Index != "audit_pkey" || !strings.Contains(p.Cond, "tenant = ") || !strings.Contains(p.Cond, "instance = ") {
					t.Errorf("%s, %s: %+v", name, mode, steps)
				}
			}
		}
	}
	t.Run("empty", check)
	// Many instances with a few versions, and one with very many.
	exec(`INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, from_state, to_state, actor, payload, data, scope, key, at, hash)
		SELECT 't', CASE WHEN n <= 10000 THEN '` + id + `' ELSE md5((n / 4)::text)::uuid END, CASE WHEN n <= 10000 THEN n ELSE 1 + n % 4 END, n, 'w', 't',
			CASE WHEN n = 1 OR n > 10000 AND n % 4 = 0 THEN NULL ELSE 's' END, 's', 'a', '{}', '{}', 's', 'k',
			'2026-01-01'::timestamptz + n * interval '1 minute', decode(repeat('00', 32), 'hex')
		FROM generate_series(1, 40000) n`)
	t.Run("full, with the statistics of the empty one", check)
	exec("ANALYZE pawl.audit")
	t.Run("full", check)
}

// Verifying a tenant is not quadratic in its rows: also where the planner takes
// the tenant for one that has nothing, nothing is joined row by row.
func TestATenantIsVerifiedByHashOrMergeJoins(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t)
	fill := func(tenant string) string {
		return fmt.Sprintf(`
		INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
		SELECT '%[1]s', md5(n::text)::uuid, 'w', 1, 's', 1, '{}', true, sha256('x'), now(), now() FROM generate_series(1, 10000) n;
		INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, to_state, actor, payload, data, scope, key, at, hash)
		SELECT tenant, id, 1, row_number() OVER (), workflow, 't', state, 'a', '{}', '{}', 's', 'k', '2026-01-05', sha256('x')
		FROM pawl.instance WHERE tenant = '%[1]s';
		INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
		SELECT tenant, position, 'w.t', 0, workflow, instance, version, transition, to_state, at FROM pawl.audit WHERE tenant = '%[1]s'`, tenant)
	}
	const analyze = "ANALYZE pawl.instance, pawl.audit, pawl.outbox"
	for _, s := range []struct{ name, sql string }{
		{"empty", "SELECT pawl.make_partition('outbox', '2026-01-05'); " + analyze}, {"full, with the statistics of empty tables", fill("o")},
		{"full, and the tenant is another's", analyze}, {"full, with the statistics of before the tenant", fill("t")}, {"full", analyze},
	} {
		if _, err := pool.Exec(t.Context(), s.sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		for name, sql := range map[string]string{"chains": strings.ReplaceAll(chainsSQL, "$2", "NULL"), "events": eventsSQL} {
			steps := pgtest.Explain(t, pool, "", strings.ReplaceAll(sql, "$1", "'t'"), pgx.QueryExecModeSimpleProtocol)
			if slices.ContainsFunc(steps, func(p pgtest.Step) bool { return p.Type == "Nested Loop" }) {
				t.Errorf("%s, %s: %+v", s.name, name, steps)
			}
		}
	}
}
