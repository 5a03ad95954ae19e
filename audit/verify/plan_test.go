package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
)

func TestMain(m *testing.M) { tables.Main(m) }

// The cost of verifying a tenant is not quadratic: no join is a nested loop, even if the planner expects no rows.
func TestVerifyUsesHashOrMergeJoins(t *testing.T) {
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
		_, err := pool.Exec(t.Context(), s.sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		for name, sql := range map[string]string{"chains": strings.ReplaceAll(chainsSQL, "$2", "NULL"), "events": eventsSQL} {
			steps := pgtest.Explain(t, pool, "", strings.ReplaceAll(sql, "$1", "'t'"), pgx.QueryExecModeSimpleProtocol)
			assert.Falsef(t, slices.ContainsFunc(steps, func(p pgtest.Step) bool { return p.Type == "Nested Loop" }),
				"%s, %s: %+v", s.name, name, steps)
		}
	}
}
