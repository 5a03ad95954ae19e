package retention

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// However much is due and stays, a look reads a batch of it, whether or not the
// planner knows the table.
func TestALookForUnknownWorkReadsABatch(t *testing.T) {
	t.Parallel()
	pool, now := pgtest.Pool(t), time.Now()
	run := func(sql string, args ...any) {
		t.Helper()
		_, err := pool.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	run(`INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
			phase, attempt, failures, revision, run_at, request, updated_at)
		SELECT 't', 'inbox:letters', n, sha256('x'), 'pending', 'w', 'a', gen_random_uuid(), 'a', $1,
			'working', 0, 0, 0, $1::timestamptz - interval '3 days' + n * interval '1 ms', '{}', $1 FROM generate_series(1, 20000) AS n`, now)
	for _, first := range []string{"SELECT", "ANALYZE pawl.command"} {
		run(first)
		var looked bool
		for _, s := range pgtest.Explain(t, pool, "ANALYZE, ", store.GiveUpSQL, now, (24 * time.Hour).Microseconds(), []string{}, time.Time{},
			500, "{}", "pawl:late:") {
			looked = looked || s.Type == "Index Scan" && s.Index == "command_work"
			if s.Relation == "command" && s.Rows > 501 { // one more tells that there are no ties
				t.Errorf("after %s: it reads %.0f rows: %+v", first, s.Rows, s)
			}
		}
		assert.Truef(t, looked, "after %s: it does not go along the index of what is due", first)
	}
}
