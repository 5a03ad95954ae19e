package schema_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

func TestClaimReplaysResult(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	tx := begin(t, pool)
	wantClaim(t, tx, "k", "request", "new 1")
	exec(t, tx, `SELECT pawl.succeed('s', 'k', 1, '{"b": 1, "a": 2}', 201)`)
	commit(t, tx)
	for range 2 {
		wantClaim(t, pool, "k", "request", `replay 1 201 {"b": 1, "a": 2}`)
	}
	wantClaim(t, pool, "other", "request", "new 1")
	got, err := claimAs(t.Context(), pool, "'other', 'k', sha256('request')")
	assert.Truef(t, err == nil && got.String() == "new 1", "another scope: %v, %v", got, err)
	got, err = claimAs(t.Context(), pool, "'s', 'k', sha256('request'), tenant => 'acme'")
	assert.Truef(t, err == nil && got.String() == "new 1", "another tenant: %v, %v", got, err)
}

func TestRetryableFailureAllowsNextAttempt(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	wantClaim(t, pool, "k", "request", "new 1")
	exec(t, pool, `SELECT pawl.fail('s', 'k', 1, 'the shop is closed')`)
	wantClaim(t, pool, "k", "request", "retry 2")
	exec(t, pool, `SELECT pawl.fail('s', 'k', 2, 'still closed')`)
	got := ask[string](t, pool, `SELECT concat_ws(' ', status, attempt, failures, failure, phase, claimed_by IS NOT NULL) FROM pawl.command`)
	assert.Equal(t, "failed_retryable 2 2 still closed sql t", got)
	wantClaim(t, pool, "k", "request", "retry 3")
	exec(t, pool, `SELECT pawl.succeed('s', 'k', 3)`)
	wantClaim(t, pool, "k", "request", "replay 3 200 {}")
	if got := ask[string](t, pool, `SELECT concat_ws(' ', status, coalesce(phase, 'finished'), num_nonnulls(held_until, locked_until, run_at,
		request), finished_at + '24 h' = expires_at) FROM pawl.command`); got != "succeeded finished 0 t" {
		t.Errorf("got %s", got)
	}
}

func TestExpiredLeaseCannotComplete(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	const args = "'s', 'k', sha256('request'), lease => '1 microsecond'"
	got, err := claimAs(t.Context(), pool, args)
	require.Truef(t, err == nil && got.String() == "new 1", "%v %v", got, err)
	got, err = claimAs(t.Context(), pool, args)
	require.Truef(t, err == nil && got.String() == "taken_over 2", "%v %v", got, err)
	e := refused(t, pool, "P4010", `SELECT pawl.succeed('s', 'k', 1)`)
	assert.Truef(t, strings.Contains(e.Detail, "processing, its attempt 2") && e.Hint != "", "detail %q, hint %q", e.Detail, e.Hint)
	refused(t, pool, "P4011", `SELECT pawl.fail('s', 'k', 1, 'x')`)
	refused(t, pool, "P4011", `SELECT pawl.fail('s', 'k', 1, 'x', final => true)`)
	assert.Equal(t, "processing 2 1", ask[string](t, pool, `SELECT concat_ws(' ', status, attempt, failures) FROM pawl.command`))
	// No attempt has taken over: the second one holds the command, even if its lease has expired.
	exec(t, pool, `SELECT pawl.succeed('s', 'k', 2)`)
	refused(t, pool, "P4010", `SELECT pawl.succeed('s', 'k', 2)`)
}

func TestOnlyHeldCommandCanBeCompleted(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	assert.Contains(t, refused(t, pool, "P4010", `SELECT pawl.succeed('s', 'k', 1)`).Detail, "no such command", "detail")
	refused(t, pool, "P4011", `SELECT pawl.fail('s', 'k', 1, 'x')`)
	refused(t, pool, "P4010", `SELECT pawl.transition('s', 'k', 1, 0, 'placed', '{}')`)
	wantClaim(t, pool, "k", "request", "new 1")
	refused(t, pool, "P4010", `SELECT pawl.succeed('s', 'k', NULL)`)
	refused(t, pool, "P4010", `SELECT pawl.succeed('s', 'k', 1, tenant => 'acme')`)
	exec(t, pool, `SELECT pawl.fail('s', 'k', 1, 'x')`)
	refused(t, pool, "P4010", `SELECT pawl.succeed('s', 'k', 1)`)
	refused(t, pool, "P4011", `SELECT pawl.fail('s', 'k', 1, 'x')`)
}

func TestClaimErrors(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, `SELECT pawl.claim('s', 'held', sha256('request'), lease => '1 hour');
		SELECT pawl.claim('s', 'old', sha256('request')); SELECT pawl.succeed('s', 'old', 1, replay => '1 microsecond');
		SELECT pawl.claim('s', 'bad', sha256('request')); SELECT pawl.fail('s', 'bad', 1, 'x', true, '1 microsecond');
		SELECT pawl.claim('s', 'dead', sha256('request')); SELECT pawl.succeed('s', 'dead', 1);
		UPDATE pawl.command SET status = 'expired', code = NULL, state = NULL, body = NULL, expires_at = NULL WHERE key = 'dead'`)
	for _, tt := range []struct{ state, args, message string }{
		{"P4000", "NULL, 'k', sha256('')", "scope is missing"},
		{"P4000", "'', 'k', sha256('')", "scope is missing"},
		{"P4000", "repeat('é', 128), 'k', sha256('')", "longer than 255 bytes"},
		{"P4000", "'pawl:timer:x', 'k', sha256('')", "Pawl's own"},
		{"P4001", "'s', NULL, sha256('')", "key is missing"},
		{"P4001", "'s', '', sha256('')", "key is missing"},
		{"P4001", "'s', repeat('x', 256), sha256('')", "longer than 255 bytes"},
		{"P4003", "'s', 'k', NULL", "hash is missing"},
		{"P4003", "'s', 'k', 'abc'", "not 32 bytes"},
		{"P4002", "'s', 'held', sha256('another')", "another request"},
		{"P4002", "'s', 'old', sha256('another')", "another request"},
		{"P4029", "'s', 'held', sha256('request')", "being worked on"},
		{"P4099", "'s', 'old', sha256('request')", "past its horizon"},
		{"P4099", "'s', 'bad', sha256('request')", "past its horizon"},
		{"P4099", "'s', 'dead', sha256('request')", "past its horizon"},
		{"22023", "'s', 'k', sha256(''), tenant => ''", "tenant is missing"},
		{"22023", "'s', 'k', sha256(''), tenant => repeat('x', 65)", "longer than 64 bytes"},
		{"22023", "'s', 'k', sha256(''), actor => ''", "actor is missing"},
		{"22023", "'s', 'k', sha256(''), actor => 'pawl:timer'", "Pawl's own"},
		{"22023", "'s', 'k', sha256(''), lease => NULL", "lease is missing"},
		{"22023", "'s', 'k', sha256(''), lease => '-1 s'", "already over"},
	} {
		_, err := claimAs(t.Context(), pool, tt.args)
		e := raised(t, err, tt.state)
		assert.Contains(t, e.Message, tt.message, tt.args)
		assert.Falsef(t, strings.HasPrefix(e.Code, "P4") && e.Code > "P4001" && (e.Hint == "" || e.Detail == "" && e.Code != "P4003"),
			"%s: detail %q, hint %q", tt.args, e.Detail, e.Hint)
	}
}

func TestSucceedRejectsUnreadableResults(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	wantClaim(t, pool, "k", "request", "new 1")
	for _, sql := range []string{
		`SELECT pawl.succeed('s', 'k', 1, '[]')`,
		`SELECT pawl.succeed('s', 'k', 1, NULL)`,
		`SELECT pawl.succeed('s', 'k', 1, code => 202)`, // means in flight to callers of the engine
		`SELECT pawl.succeed('s', 'k', 1, code => 409)`,
		`SELECT pawl.succeed('s', 'k', 1, code => NULL)`,
		`SELECT pawl.succeed('s', 'k', 1, replay => '0')`,
		`SELECT pawl.fail('s', 'k', 1, '')`,
		`SELECT pawl.fail('s', 'k', 1, NULL)`,
		`SELECT pawl.fail('s', 'k', 1, 'x', true, replay => '0')`,
		`SELECT pawl.fail('s', 'k', 1, 'x', NULL)`,
		`SELECT pawl.purge(0)`,
		`SELECT pawl.purge(NULL)`,
		`SELECT pawl.purge(1, '-1 s')`,
		`SELECT pawl.purge(moment => 'infinity')`,
	} {
		refused(t, pool, "22023", sql)
	}
	refused(t, pool, "22P02", `SELECT pawl.succeed('s', 'k', 1, '{')`)
	exec(t, pool, `SELECT pawl.succeed('s', 'k', 1)`)
}

// The second of two concurrent attempts waits for the first and sees its result.
func TestConcurrentClaimSeesFirstResult(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ first, request, want, state string }{
		"done":            {first: `SELECT pawl.succeed('s', 'k', 1, '{"n":1}')`, want: `replay 1 200 {"n":1}`},
		"undone":          {first: "ROLLBACK", want: "new 1"},
		"failed for good": {first: `SELECT pawl.fail('s', 'k', 1, 'no', true)`, state: "P4030"},
		"failed":          {first: `SELECT pawl.fail('s', 'k', 1, 'later')`, want: "retry 2"},
		"held":            {first: `SELECT 1`, state: "P4029"},
		"another":         {first: `SELECT pawl.succeed('s', 'k', 1)`, request: "another", state: "P4002"},
		"expired":         {first: `SELECT pawl.succeed('s', 'k', 1, replay => '1 microsecond')`, state: "P4099"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			tx := begin(t, pool)
			wantClaim(t, tx, "k", "request", "new 1")
			second := background(t, pool, func(conn *pgxpool.Conn) (claimed, error) {
				return claim(t.Context(), conn, "k", cmp.Or(tt.request, "request"))
			})
			exec(t, tx, tt.first)
			if tt.first != "ROLLBACK" {
				commit(t, tx)
			}
			switch got := <-second; {
			case tt.state != "":
				raised(t, got.err, tt.state)
			case got.err != nil || got.value.String() != tt.want:
				t.Errorf("got %v, %v; want %s", got.value, got.err, tt.want)
			}
		})
	}
}

func TestConcurrentTakeoverHasOneWinner(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, `SELECT pawl.claim('s', 'k', sha256('request'), lease => '1 microsecond')`)
	tx := begin(t, pool)
	wantClaim(t, tx, "k", "request", "taken_over 2")
	second := background(t, pool, func(conn *pgxpool.Conn) (claimed, error) { return claim(t.Context(), conn, "k", "request") })
	zombie := background(t, pool, func(conn *pgxpool.Conn) (string, error) {
		_, err := conn.Exec(t.Context(), `SELECT pawl.succeed('s', 'k', 1)`)
		return "", err
	})
	commit(t, tx)
	raised(t, (<-second).err, "P4029")
	raised(t, (<-zombie).err, "P4010")
}

// A claim on an instance locks the instance before the key, like all code.
func TestClaimLocksInstanceFirst(t *testing.T) {
	t.Parallel()
	pool, e := served(t)
	_, err := e.Submit(t.Context(), place("checkout", "k-1"))
	require.NoError(t, err)
	tx := begin(t, pool)
	exec(t, tx, "SELECT FROM pawl.instance FOR NO KEY UPDATE")
	waiting := background(t, pool, func(conn *pgxpool.Conn) (claimed, error) {
		return claimAs(t.Context(), conn, "'s', 'k', sha256('x'), 'order', 'ship', $1", idOf("k-1"))
	})
	wantClaim(t, tx, "k", "x", "new 1") // the key is free
	commit(t, tx)
	raised(t, (<-waiting).err, "P4029")
}

// The codes of the engine match the SQLSTATEs of the contract.
func TestEngineCodesMatchSQLStates(t *testing.T) {
	t.Parallel()
	for code, want := range map[workflow.Code]string{
		workflow.ScopeMissing: "P4000", workflow.KeyMissing: "P4001", workflow.KeyReused: "P4002", workflow.HashMissing: "P4003",
		workflow.LeaseLost: "P4010", workflow.InProgress: "P4029", workflow.ActivityFailed: "P4030"} {
		assert.Equalf(t, want, code.Info().SQLState, "%s has", code)
	}
}

// Without an explicit retention, results are replayed for that of the workflow, or 24 hours without a workflow.
func TestReplayRetentionOfWorkflow(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
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
		"null": 7 * 24 * time.Hour, "own": 2 * time.Hour} {
		assert.Equal(t, want, ask[time.Duration](t, pool, "SELECT expires_at - finished_at FROM pawl.command WHERE key = $1", key), key)
	}
}
