package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/schedule"
	"github.com/pawlhq/pawl/workflow"
)

// 10,000 schedules are due at the same time. The benchmark reports when the slowest hundredth of their instances was created.
func BenchmarkSchedules_10000Due(b *testing.B) {
	pool := database(b)
	for b.Loop() {
		exec(b, pool, "TRUNCATE pawl.schedule")
		var due time.Time
		require.NoError(b, pool.QueryRow(b.Context(), `WITH made AS (
	INSERT INTO pawl.schedule (tenant, name, instance, revision, plan, paused, last_at, next_at, due_at)
	SELECT 'default', 's' || n || now()::text, gen_random_uuid(), 1,
		'{"spec":{"cron":"* * * * *"},"run":{"workflow":"report","transition":"open","payload":{"at":"{nominal}"}}}',
		false, m, m + interval '1 minute', now() + interval '4 seconds'
	FROM generate_series(1, 10000) AS n, date_trunc('minute', now() - interval '1 minute') AS m RETURNING due_at)
SELECT max(due_at) FROM made`).Scan(&due))
		e := newEngine(b, pool, func(c *engine.Config) { c.Workflows = []workflow.Source{reports(), schedule.New(nil)} })
		await.Eventually(b, "all runs are submitted", func() bool { return e.Admin().ScheduleStats().Submitted == 10000 })
		b.ReportMetric(query[float64](b, pool, `SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM created_at - $1)::float8)
	FROM pawl.instance WHERE workflow = 'report' AND created_at >= $1`, due), "s/p99")
		e.Stop(b.Context())
	}
}
