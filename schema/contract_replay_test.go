package schema_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Without an explicit retention, results are replayed for that of the workflow, or 24 hours without a workflow.
func TestReplayRetentionOfWorkflow(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	exec(t, pool, `INSERT INTO pawl.horizon (workflow, replay) VALUES ('order', '7 days');
		SELECT pawl.claim('s', 'none', sha256('x')); SELECT pawl.succeed('s', 'none', 1);
		SELECT pawl.claim('s', 'unknown', sha256('x'), 'parcel'); SELECT pawl.succeed('s', 'unknown', 1);
		SELECT pawl.claim('s', 'done', sha256('x'), 'order'); SELECT pawl.succeed('s', 'done', 1);
		SELECT pawl.claim('s', 'failed', sha256('x'), 'order'); SELECT pawl.fail('s', 'failed', 1, 'no', true);
		SELECT pawl.claim('s', 'null', sha256('x'), 'order'); SELECT pawl.succeed('s', 'null', 1, replay => NULL);
		SELECT pawl.claim('s', 'own', sha256('x'), 'order'); SELECT pawl.succeed('s', 'own', 1, replay => '2 hours')`)
	n := ask[int](t, pool, `SELECT count(*) FROM pg_proc WHERE pronamespace = 'pawl'::regnamespace
		AND proname IN ('succeed', 'fail', 'transition')
		AND pg_get_function_arguments(oid) LIKE '%replay interval DEFAULT NULL%'`)
	assert.Equal(t, 3, n, "functions leave it to the workflow")
	for key, want := range map[string]time.Duration{
		"none": 24 * time.Hour, "unknown": 24 * time.Hour, "done": 7 * 24 * time.Hour, "failed": 7 * 24 * time.Hour,
		"null": 7 * 24 * time.Hour, "own": 2 * time.Hour,
	} {
		assert.Equal(t, want, ask[time.Duration](t, pool, "SELECT expires_at - finished_at FROM pawl.command WHERE key = $1", key), key)
	}
}
