package schema_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// finished inserts n commands that the engine has finished, whose answers expire
// after the interval.
func finished(t testing.TB, q querier, scope string, n int, expires string) {
	t.Helper()
	exec(t, q, fmt.Sprintf(`INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code, body,
			created_at, finished_at, expires_at)
		SELECT 't' || n %% 3, '%s', n, sha256('x'), 'succeeded', 'w', 't', gen_random_uuid(), 'a', 200, '{}', now(), now(),
			now() + interval '%s' + n * interval '1 ms'
		FROM generate_series(1, %d) AS n`, scope, expires, n))
}

func left(t testing.TB, q querier) string {
	t.Helper()
	return ask[string](t, q, `SELECT coalesce(string_agg(scope || ' ' || n, ', ' ORDER BY scope), '') FROM (SELECT scope, count(*) AS n FROM pawl.command GROUP BY scope) c`)
}

func TestPurgeDeletesWhatIsFinishedAndForgotten(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	finished(t, pool, "gone", 5, "-31 days")
	finished(t, pool, "tombstone", 4, "-29 days")
	finished(t, pool, "replayed", 3, "1 hour")
	exec(t, pool, `UPDATE pawl.command SET status = 'expired', code = NULL, body = NULL WHERE scope = 'gone' AND key = '1';
		SELECT pawl.claim('held', 'k', sha256('x'), lease => '1 us');
		SELECT pawl.claim('again', 'k', sha256('x')); SELECT pawl.fail('again', 'k', 1, 'x');
		UPDATE pawl.command SET created_at = now() - interval '1 year', claimed_at = now() - interval '1 year', expires_at = now() - interval '1 year'
			WHERE phase IS NOT NULL`)
	if n := ask[int](t, pool, "SELECT pawl.purge()"); n != 5 {
		t.Errorf("purged %d", n)
	}
	if got := left(t, pool); got != "again 1, held 1, replayed 3, tombstone 4" {
		t.Errorf("left are %s", got)
	}
	if n := ask[int](t, pool, "SELECT pawl.purge(tombstone => '1 day')"); n != 4 {
		t.Errorf("purged %d", n)
	}
	if n := ask[int](t, pool, "SELECT pawl.purge()"); n != 0 {
		t.Errorf("purged %d", n)
	}
	// A key that is forgotten is new.
	if got, err := claimAs(t.Context(), pool, "'gone', '2', sha256('y'), tenant => 't2'"); err != nil || got.String() != "new 1" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestPurgeForgetsMessagesPastTheirTime(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	exec(t, pool, `SELECT pawl.consume('c', 'old', sha256('x'), '1 us'); SELECT pawl.consume('c', 'new', sha256('x'))`)
	if n := ask[int](t, pool, "SELECT pawl.purge()"); n != 1 {
		t.Errorf("purged %d", n)
	}
	if ask[bool](t, pool, "SELECT pawl.consume('c', 'new', sha256('x'))") || !ask[bool](t, pool, "SELECT pawl.consume('c', 'old', sha256('y'))") {
		t.Error("the wrong message was forgotten")
	}
}

func TestPurgeTakesTheOldestFirstInBatchesAndWaitsForNobody(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	finished(t, pool, "a", 10, "-40 days")
	finished(t, pool, "b", 10, "-50 days")
	tx := begin(t, pool)
	exec(t, tx, "SELECT FROM pawl.command WHERE scope = 'b' AND key IN ('1', '2') FOR UPDATE")
	first := begin(t, pool)
	if n := ask[int](t, first, "SELECT pawl.purge(3)"); n != 3 {
		t.Errorf("purged %d", n)
	}
	// At the same time another one purges others.
	if n := ask[int](t, pool, "SELECT pawl.purge(3)"); n != 3 {
		t.Errorf("purged %d", n)
	}
	commit(t, first)
	if got := left(t, pool); got != "a 10, b 4" {
		t.Errorf("left are %s", got)
	}
	if n := ask[int](t, pool, "SELECT pawl.purge(1000)"); n != 12 {
		t.Errorf("purged %d", n)
	}
	commit(t, tx)
	if n := ask[int](t, pool, "SELECT pawl.purge(1000)"); n != 2 {
		t.Errorf("purged %d", n)
	}
}

// A purge that deletes a key's row while a claim is about to look at it must not
// leave the claim with nothing.
func TestAClaimThatMeetsAPurgeIsNew(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	exec(t, pool, "SELECT pawl.claim('s', 'k', sha256('x')); SELECT pawl.succeed('s', 'k', 1, replay => '1 us')")
	tx := begin(t, pool)
	if n := ask[int](t, tx, "SELECT pawl.purge(tombstone => '0')"); n != 1 {
		t.Fatalf("purged %d", n)
	}
	second := background(t, pool, func(conn *pgxpool.Conn) (claimed, error) { return claim(t.Context(), conn, "k", "y") })
	commit(t, tx)
	if got := <-second; got.err != nil || got.value.String() != "new 1" {
		t.Errorf("got %v, %v", got.value, got.err)
	}
}
