package retention_test

import (
	"testing"

	"github.com/pawlhq/pawl/engine/retention"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// What is due and stays, because this node decides it, does not hide what comes
// after it, though one look does not reach that far.
func TestARunnerGoesOnBehindWhatStays(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	for workflow, n := range map[string]int{"decided": 350, "gone": 20} {
		exec(t, pool, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
				phase, attempt, failures, revision, run_at, request, updated_at)
			SELECT 't', $1, n, sha256('x'), 'pending', $1, 't', gen_random_uuid(), 'a', $2, 'scheduled', 0, 0, 0, $2, '{}', $2
			FROM generate_series(1, $3::int) AS n`, workflow, c.now(), n)
	}
	c.skip(2 * day)
	r := runner(t, pool, "a", c, func(c *retention.Config) { c.Decided, c.Batch = []string{"decided"}, 50 })
	eventually(t, "they are ended", func() bool { return r.Stats().Abandoned == 20 })
	if n := ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE status = 'pending' AND workflow = 'decided'"); n != 350 {
		t.Errorf("%d of those that stay are left", n)
	}
}
