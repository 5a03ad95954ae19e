package schema_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// finished inserts n commands completed by the engine whose results expire after the interval.
func finished(t testing.TB, q querier, scope string, n int, expires string) {
	t.Helper()
	exec(t, q, fmt.Sprintf(`INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code,
		body,
			created_at, finished_at, expires_at)
		SELECT 't' || n %% 3, '%s', n, sha256('x'), 'succeeded', 'w', 't', gen_random_uuid(), 'a', 200, '{}', now(), now(),
			now() + interval '%s' + n * interval '1 ms'
		FROM generate_series(1, %d) AS n`, scope, expires, n))
}

func left(t testing.TB, q querier) string {
	t.Helper()
	return ask[string](t, q, `SELECT coalesce(string_agg(scope || ' ' || n, ', ' ORDER BY scope), '') FROM (SELECT scope, count(*) AS n
		FROM pawl.command GROUP BY scope) c`)
}

// purged is the result of a purge: expired, forgotten, abandoned, archived.
type purged [4]int

func purge(t testing.TB, q querier, args string) purged {
	t.Helper()
	return purged(ask[[]int](t, q, "SELECT ARRAY[expired, forgotten, abandoned, archived]::int[] FROM pawl.purge("+args+")"))
}

func wantPurged(t testing.TB, q querier, args string, want purged) {
	t.Helper()
	assert.Equalf(t, want, purge(t, q, args), "purge(%s): expired, forgotten, abandoned, archived", args)
}

func TestPurgeCreatesAndDeletesTombstones(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	finished(t, pool, "gone", 5, "-31 days")
	finished(t, pool, "past", 4, "-29 days")
	finished(t, pool, "replayed", 3, "1 hour")
	exec(t, pool, `UPDATE pawl.command SET attempt = 1, failures = 2, failure = 'x', progress = '{}', claimed_by = 'n' WHERE scope = 'past';
		SELECT pawl.claim('held', 'k', sha256('x'), lease => '1 us');
		SELECT pawl.claim('worked', 'k', sha256('x'), lease => '1 us');
		UPDATE pawl.command SET phase = 'working', locked_until = held_until, held_until = NULL WHERE scope = 'worked';
		UPDATE pawl.command SET created_at = now() - interval '1 year', updated_at = now() - interval '1 year',
			expires_at = now() - interval '1 year'
			WHERE phase IS NOT NULL`)
	// Keys past the tombstone's time are forgotten at once.
	wantPurged(t, pool, "", purged{9, 5, 0, 0})
	assert.Equal(t, "held 1, past 4, replayed 3, worked 1", left(t, pool), "left")
	n := ask[int](t, pool, `SELECT count(*) FROM pawl.command WHERE scope = 'past' AND status = 'expired' AND fingerprint = sha256('x')
		AND expires_at BETWEEN now() AND now() + interval '2 days'
			AND num_nulls(code, body, attempt, failures, failure, progress, claimed_by) = 7`)
	assert.Equal(t, 4, n, "tombstones are as they should be")
	wantPurged(t, pool, "", purged{})
	raised(t, errOf(claimAs(t.Context(), pool, "'past', '2', sha256('x'), tenant => 't2'")), "P4099")
	wantPurged(t, pool, "moment => now() + interval '2 days'", purged{3, 4, 0, 0})
	// A forgotten key is new.
	got, err := claimAs(t.Context(), pool, "'gone', '2', sha256('y'), tenant => 't2'")
	assert.Truef(t, err == nil && got.String() == "new 1", "got %v, %v", got, err)
}

// The row's own retention precedes the workflow's, which precedes the caller's.
func TestPurgeTombstonePrecedence(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, "INSERT INTO pawl.horizon (workflow, replay, tombstone) VALUES ('w', '1 day', '10 days'), ('forever', '1 day', NULL)")
	for _, scope := range []string{"default", "workflow", "own", "own forever", "forever"} {
		finished(t, pool, scope, 1, "-1 hour")
	}
	exec(t, pool, `UPDATE pawl.command SET workflow = 'other' WHERE scope = 'default';
		UPDATE pawl.command SET workflow = 'forever' WHERE scope = 'forever';
		UPDATE pawl.command SET forget_at = now() + interval '3 days' WHERE scope = 'own';
		UPDATE pawl.command SET forget_at = 'infinity' WHERE scope = 'own forever'`)
	wantPurged(t, pool, "tombstone => '5 days'", purged{5, 0, 0, 0})
	for day, want := range map[int]string{
		2: "default 1, forever 1, own 1, own forever 1, workflow 1", 4: "default 1, forever 1, own forever 1, workflow 1",
		6: "forever 1, own forever 1, workflow 1", 11: "forever 1, own forever 1", 36500: "forever 1, own forever 1"} {
		tx := begin(t, pool)
		purge(t, tx, fmt.Sprintf("moment => now() + interval '%d days'", day))
		assert.Equalf(t, want, left(t, tx), "after %d days there", day)
		require.NoError(t, tx.Rollback(t.Context()))
	}
}

func TestPurgeArchivesToHistory(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, "INSERT INTO pawl.horizon (workflow, replay, tombstone, history) VALUES ('w', '1 day', '10 days', true)")
	finished(t, pool, "wanted", 5, "-1 hour")
	finished(t, pool, "not", 2, "-1 hour")
	finished(t, pool, "later", 2, "1 hour")
	exec(t, pool, `UPDATE pawl.command SET workflow = 'other' WHERE scope = 'not';
		UPDATE pawl.command SET body = '{"n":' || key || '}', failures = 1, failure = 'once', finished_at = '2001-02-03 04:05',
			forget_at = '2001-04-01' WHERE key = '3';
		UPDATE pawl.command SET body = '{"n":' || key || '}', finished_at = now() + interval '1 year' WHERE key = '4'`)
	before := ask[string](t, pool, historyOf("pawl.command WHERE scope = 'wanted'", "expires_at"))
	wantPurged(t, pool, "", purged{7, 1, 0, 5})
	assert.Equal(t, before, ask[string](t, pool, historyOf("pawl.command_history", "expired_at")), "the history is\n \nwant")
	assert.Equal(t, 6, ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE status = 'expired'"), "tombstones")
	wantPurged(t, pool, "moment => now() + interval '20 days'", purged{2, 6, 0, 2})
	assert.Equal(t, 7, ask[int](t, pool, "SELECT count(*) FROM pawl.command_history"), "rows of history")
}

// historyOf returns the text of a row of the history.
func historyOf(from, expired string) string {
	return `SELECT json_agg(json_build_array(tenant, scope, key, workflow, transition, instance, version, actor, status, code, body, failures,
		failure,
		created_at, finished_at, ` + expired + `) ORDER BY scope, key)::text FROM ` + from
}

func TestPurgeOldestFirstInBatches(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	finished(t, pool, "a", 10, "-40 days")
	finished(t, pool, "b", 10, "-50 days")
	tx := begin(t, pool)
	exec(t, tx, "SELECT FROM pawl.command WHERE scope = 'b' AND key IN ('1', '2') FOR UPDATE")
	first := begin(t, pool)
	wantPurged(t, first, "3", purged{3, 3, 0, 0})
	// Another session purges concurrently.
	wantPurged(t, pool, "3", purged{3, 3, 0, 0})
	commit(t, first)
	assert.Equal(t, "a 10, b 4", left(t, pool), "left")
	wantPurged(t, pool, "", purged{12, 12, 0, 0})
	commit(t, tx)
	wantPurged(t, pool, "", purged{2, 2, 0, 0})
}

// Commands that no caller continues end with a result for late callers.
func TestPurgeEndsAbandonedCommands(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, `INSERT INTO pawl.horizon (workflow, replay) VALUES ('quick', '1 hour'), ('slow', '10 days');
		INSERT INTO pawl.paused (tenant, workflow, actor, at) VALUES ('default', 'paused', 'ann', now())`)
	for _, workflow := range []string{"quick", "slow", "other"} {
		exec(t, pool, fmt.Sprintf("SELECT pawl.claim('back', '%[1]s', sha256('x'), '%[1]s'); SELECT pawl.fail('back', '%[1]s', 1, 'no')",
			workflow))
	}
	for _, workflow := range []string{"quick", "slow", "other", "decided", "paused"} {
		exec(t, pool, scheduled("planned", workflow, workflow))
	}
	exec(t, pool, scheduled("pawl:timer", "a timer", "quick"))
	exec(t, pool, "SELECT pawl.claim('back', 'held', sha256('x'), 'quick')")

	ended := func(args string, want string) {
		t.Helper()
		tx := begin(t, pool)
		got := purge(t, tx, args)
		list := ask[string](t, tx, "SELECT coalesce(string_agg(scope || ' ' || key, ', ' ORDER BY scope, key), '') FROM pawl.command WHERE "+
			"status = 'failed_final'")
		assert.Truef(t, list == want && got[2] == ask[int](t, tx, "SELECT count(*) FROM pawl.command WHERE code = 408"),
			"purge(%s): %v, ended are %s, want %s", args, got, list, want)
		require.NoError(t, tx.Rollback(t.Context()))
	}
	const engines = ", decided => '{decided}'"
	ended("moment => now() + interval '59 minutes'"+engines, "")
	ended("moment => now() + interval '2 hours'"+engines, "back quick, planned quick")
	ended("moment => now() + interval '2 hours'", "back quick") // a SQL caller cannot know who decides
	ended("moment => now() + interval '2 days'"+engines, "back other, back quick, planned other, planned quick")
	ended("moment => now() + interval '1 year'"+engines, "back other, back quick, back slow, planned other, planned quick, planned slow")
	ended("1, moment => now() + interval '1 year'"+engines, "planned quick")

	wantPurged(t, pool, "moment => now() + interval '2 hours'", purged{0, 0, 1, 0})
	_, err := claimAs(t.Context(), pool, "'back', 'quick', sha256('x')")
	problem := transitions.ProblemOf(&workflow.Error{Code: workflow.CommandAbandoned, Message: workflow.CommandAbandoned.Info().Meaning})
	e := raised(t, err, "P4030")
	assert.Equalf(t, string(problem.JSON()), e.Detail, "the answer is\n \nand the engine's is\n%s", problem.JSON())
	wantPurged(t, pool, "moment => now() + interval '4 hours'", purged{1, 0, 0, 0})
}

// A purge that abandons a command respects the retention requested by its caller.
func TestPurgeRespectsCallersRetention(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, "INSERT INTO pawl.horizon (workflow, replay, tombstone) VALUES ('w', '1 hour', '2 hours')")
	for key, request := range map[string]string{"plain": `{}`, "own": `{"replay_ns":36000000000000,"tombstone_ns":3600000000000}`,
		"for ever": `{"tombstone_ns":9223372036854775807}`} {
		exec(t, pool, scheduled("s", key, "w")+fmt.Sprintf("UPDATE pawl.command SET request = '%s' WHERE key = '%s'", request, key))
	}
	wantPurged(t, pool, "moment => now() + interval '9 hours', decided => '{}'", purged{0, 0, 2, 0})
	wantPurged(t, pool, "moment => now() + interval '10 hours 1 second', decided => '{}'", purged{2, 0, 1, 0})
	got := ask[string](t, pool, `SELECT string_agg(concat_ws(' ', key, status, code, expires_at - finished_at,
		coalesce(forget_at - expires_at, '0')), ', ' ORDER BY key)
		FROM pawl.command WHERE status = 'failed_final'`)
	assert.Equal(t, "own failed_final 408 10:00:00 01:00:00", got)
	wantPurged(t, pool, "moment => now() + interval '10 years', decided => '{}'", purged{1, 2, 0, 0})
	assert.Equal(t, "for ever", ask[string](t, pool, "SELECT string_agg(key, ', ' ORDER BY key) FROM pawl.command"), "left")
}

// scheduled returns a command that is due now.
func scheduled(scope, key, workflow string) string {
	return fmt.Sprintf(`INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
			phase, attempt, failures, revision, run_at, request, updated_at)
		VALUES ('default', '%s', '%s', sha256('x'), 'pending', '%s', 't', gen_random_uuid(), 'a', now(), 'scheduled', 0, 0, 0, now(), '{}',
			now());`, scope, key, workflow)
}

// A purge may delete a key's row while a claim looks it up; the claim must then be new.
func TestClaimDuringPurgeIsNew(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, "SELECT pawl.claim('s', 'k', sha256('x')); SELECT pawl.succeed('s', 'k', 1, replay => '1 us')")
	tx := begin(t, pool)
	wantPurged(t, tx, "tombstone => '0'", purged{1, 1, 0, 0})
	second := background(t, pool, func(conn *pgxpool.Conn) (claimed, error) { return claim(t.Context(), conn, "k", "y") })
	commit(t, tx)
	got := <-second
	assert.Truef(t, got.err == nil && got.value.String() == "new 1", "got %v, %v", got.value, got.err)
}
