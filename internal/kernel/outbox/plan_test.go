package outbox

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

var week = regexp.MustCompile(`_\d{4}w\d\d`)

// A connection keeps the plan of this statement, also one that it made while the tables were empty. Whatever the planner knows of them,
// a piece of a log is a range of the primary key of each week, and a probe of the audit rows' for each event.
func TestReadingTheLogStaysOnItsIndexes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec := func(sql string) {
		t.Helper()
		_, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	check := func(when string) {
		t.Helper()
		used := map[string]int{}
		for _, step := range pgtest.ExplainPrepared(t, pool, settings, afterSQL, 3) {
			assert.Truef(t, step.Type != "Seq Scan" && step.Type != "Hash", "%s: %s on %s", when, step.Type, step.Relation)
			if step.Index != "" {
				used[week.ReplaceAllString(step.Index, "")]++
			}
			assert.Falsef(t, step.Index == "audit_pkey" && strings.Count(step.Cond, " = ") != 3,
				"%s: audit_pkey is probed by %s", when, step.Cond)
		}
		for _, step := range pgtest.ExplainPrepared(t, pool, settings, headsSQL, 1) {
			assert.Falsef(t, step.Relation != "" && (step.Index != "log_pkey" || step.Goes != "Backward"),
				"%s: heads are read by %s of %s on %s, %s", when, step.Type, step.Index, step.Relation, step.Goes)
		}
		assert.Truef(t, used["audit_pkey"] == 1 && used["outbox_pkey"] != 0 && len(used) == 2, "%s: it uses %v", when, used)
	}
	var scans string
	var b pgx.Batch
	b.Queue(settings)
	b.Queue("SELECT current_setting('enable_seqscan')").QueryRow(func(row pgx.Row) error { return row.Scan(&scans) })
	err := pool.SendBatch(t.Context(), &b).Close()
	assert.Truef(t, err == nil && scans == "off", "the settings do not last for the message: %q, %v", scans, err)
	exec("SELECT pawl.make_partition('outbox', '2026-01-02'); SELECT pawl.make_partition('outbox', '2026-01-09')")
	check("empty")
	exec("VACUUM ANALYZE")
	check("empty and vacuumed")
	exec(`INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, to_state, actor, payload, data, scope, key,
		at, hash)
		SELECT 't' || n % 10, gen_random_uuid(), 1, n, 'w', 't', 's', 'a', '{}', '{}', 's', 'k',
			'2026-01-02'::timestamptz + n % 2 * interval '7 days', sha256('x')
		FROM generate_series(1, 20000) AS n;
		INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
		SELECT tenant, position, 'w.t', 0, workflow, instance, 1, 't', 's', at FROM pawl.audit`)
	check("full, with the statistics of the empty ones")
	exec("INSERT INTO pawl.log SELECT 't' || n, 2000 FROM generate_series(0, 5000) AS n")
	exec("VACUUM ANALYZE")
	check("full")
}
