package schedules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
)

func TestMain(m *testing.M) { tables.Main(m) }

// Each statement of the runner reads the rows of an index, also with the statistics of an empty table.
func TestStatements_UseIndexes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec := func(sql string) {
		t.Helper()
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	exec("ALTER TABLE pawl.schedule SET (autovacuum_enabled = false)")
	exec("VACUUM ANALYZE pawl.schedule")
	exec(`INSERT INTO pawl.schedule (tenant, name, instance, revision, plan, paused, last_at, due_at, running, running_key)
SELECT 't', 's' || n, gen_random_uuid(), 1, '{}', false, now(), now() + (n - 50) * interval '1 second', gen_random_uuid(), 'k'
	FROM generate_series(1, 20000) n`)
	check := func(name string) {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }() // nothing was written
			_, err = tx.Exec(t.Context(), settings)
			require.NoError(t, err)
			probes(t, pgtest.Explain(t, tx, "", nextSQL), "schedule_due")
			probes(t, pgtest.Explain(t, tx, "", claimSQL, now, now, int64(batch)), "schedule_due")
			none := []*string{nil}
			probes(t, pgtest.Explain(t, tx, "", advanceSQL, []string{"t"}, []string{"s5"}, []int64{0}, []int64{1}, []time.Time{now}, none, none, none,
				[]bool{true}, none, none, none), "schedule_pkey")
			probes(t, pgtest.Explain(t, tx, "", readSQL+"WHERE tenant = $1 AND name > $2 ORDER BY tenant, name LIMIT $3", "t", "s5",
				int64(50)), "schedule_pkey")
		})
	}
	check("statistics of an empty table")
	exec("VACUUM ANALYZE pawl.schedule")
	check("statistics of a full table")
}

func probes(t *testing.T, plan []pgtest.Step, index string) {
	t.Helper()
	used := false
	for _, step := range plan {
		used = used || step.Index == index
		assert.False(t, step.Type == "Seq Scan" || step.Type == "Index Scan" && step.Index != "schedule_due" && step.Cond == "", "%+v", step)
	}
	assert.True(t, used, "the plan does not use %s: %+v", index, plan)
}
