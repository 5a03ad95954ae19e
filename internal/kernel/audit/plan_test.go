package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// Statements that read an instance's entries read only these, in the order of the index. A table known to be empty is scanned, which is
// fine: these statements are planned at each execution.
func TestEntryPlans(t *testing.T) {
	t.Parallel()
	pool := pgtest.DirectPool(t) // prepared statements are a session's
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
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
				exec(fmt.Sprintf("PREPARE explained (%s) AS %s", s.types, pgtest.SQL(s.sql)))
				steps := pgtest.Explain(t, conn, "", fmt.Sprintf("EXECUTE explained(%s)", s.values))
				exec("DEALLOCATE explained")
				if steps[0].Type == "Limit" {
					steps = steps[1:]
				}
				if p := steps[0]; p.Type != "Index Scan" || p.Index != "audit_pkey" || !strings.Contains(p.Cond, "tenant = ") ||
					!strings.Contains(p.Cond, "instance = ") {
					t.Errorf("%s, %s: %+v", name, mode, steps)
				}
			}
		}
	}
	t.Run("empty", check)
	// Many instances with a few versions, and one with very many.
	exec(`INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, from_state, to_state, actor, payload, data, scope,
		key, at, hash)
		SELECT 't', CASE WHEN n <= 10000 THEN '` + id +
		`' ELSE md5((n / 4)::text)::uuid END, CASE WHEN n <= 10000 THEN n ELSE 1 + n % 4 END, n, 'w', 't',
			CASE WHEN n = 1 OR n > 10000 AND n % 4 = 0 THEN NULL ELSE 's' END, 's', 'a', '{}', '{}', 's', 'k',
			'2026-01-01'::timestamptz + n * interval '1 minute', decode(repeat('00', 32), 'hex')
		FROM generate_series(1, 40000) n`)
	t.Run("full, with the statistics of the empty one", check)
	exec("ANALYZE pawl.audit")
	t.Run("full", check)
}
