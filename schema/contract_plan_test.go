package schema_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// reads are the reads of a table by a transaction so far, from the server's statistics.
type reads struct {
	Table    string
	SeqScans int64
	Rows     int64 // found by an index
}

// The contract finds its rows by index and reads few of them, whatever the server's statistics say about the tables.
func TestContractReadsByIndex(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	started(t, pool)
	t.Run("empty", func(t *testing.T) { readByIndex(t, pool, 0) })
	exec(t, pool, "VACUUM ANALYZE")
	t.Run("empty and vacuumed", func(t *testing.T) { readByIndex(t, pool, 0) })

	finished(t, pool, "old", 2000, "-31 days")
	finished(t, pool, "s", 30000, "1 hour")
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
			SELECT 'default', gen_random_uuid(), 'order', 1, 's', 1, '{}', true, sha256('x'), now(), now() FROM generate_series(1, 10000) n;
		INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, to_state, actor, payload, data, scope, key, at, hash)
			SELECT tenant, id, 1, 1, 'w', 't', 's', 'a', '{}', '{}', 's', 'k', now(), chain FROM pawl.instance;`)
	t.Run("full, with the statistics of the empty ones", func(t *testing.T) { readByIndex(t, pool, 100) })
	exec(t, pool, "ANALYZE")
	t.Run("full", func(t *testing.T) { readByIndex(t, pool, 100) })
}

// few is enough for a command whose row is found several times.
const few = 8

// readByIndex calls every function in its own transaction, in which due commands can be purged.
func readByIndex(t *testing.T, pool *pgxpool.Pool, due int64) {
	const place = `SELECT pawl.transition('new', 'k', c.attempt, 0, 'placed', '{}', '{}', business_key => 'b')
		FROM pawl.claim('new', 'k', sha256('x'), 'order', 'place', pawl.instance_id('order', 'b')) AS c`
	for _, tt := range []struct {
		name, sql string
		most      int64  // rows of one table
		only      string // that table; "" means each
	}{
		{"claim", "SELECT pawl.claim('new', 'k', sha256('x'))", 0, ""},
		{"claim again", "SELECT pawl.claim('new', 'k', sha256('x'), lease => '1 us'); SELECT pawl.claim('new', 'k', sha256('x'))", few, ""},
		{"succeed", "SELECT pawl.claim('new', 'k', sha256('x')); SELECT pawl.succeed('new', 'k', 1); SELECT pawl.claim('new', 'k', sha256('x'))",
			few, ""},
		{"fail", "SELECT pawl.claim('new', 'k', sha256('x')); SELECT pawl.fail('new', 'k', 1, 'x'); SELECT pawl.claim('new', 'k', sha256('x'))",
			few, ""},
		{"transition", place + "; SET CONSTRAINTS ALL IMMEDIATE", few, ""},
		{"transition again", place + `; SELECT pawl.transition('new', 'l', c.attempt, 1, 'shipped', '{}')
			FROM pawl.claim('new', 'l', sha256('x'), 'order', 'ship', pawl.instance_id('order', 'b')) AS c`, few, ""},
		{"consume", "SELECT pawl.consume('new', 'k', sha256('x')); SELECT pawl.consume('new', 'k', sha256('x'))", few, ""},
		{"purge", "SELECT pawl.purge(100)", 5 * due, ""},
		{"purge with nothing due", "SELECT pawl.purge(moment => now() - interval '100 days')", 0, "command"},
	} {
		// A session reports its statistics between transactions, so each call has its own.
		conn, err := pgx.Connect(t.Context(), pgtest.Direct(t, pool.Config().ConnString()))
		require.NoError(t, err)
		exec(t, conn, "BEGIN; "+tt.sql)
		rows, err := conn.Query(t.Context(), `SELECT relname, seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables
			WHERE relname IN ('command', 'instance', 'audit', 'log') OR relname LIKE 'outbox\_2%'`)
		require.NoError(t, err)
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[reads])
		require.NoError(t, err)
		require.Truef(t, len(list) >= 5, "counted %v", list)
		for _, r := range list {
			if tt.only != "" && tt.only != r.Table {
				continue
			}
			assert.Truef(t, r.SeqScans <= 0 && r.Rows <= tt.most, "%s: %s", tt.name, fmt.Sprintf("%+v", r))
		}
		require.NoError(t, conn.Close(t.Context()))
	}
}

// A purge without due keys reads one end of an index: a few pages, with and without statistics, whatever the size.
func TestIdlePurgeReadsFewPages(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	const args = "moment => now() - interval '1 day', decided => '{decided}'"
	pages := func(name string) {
		t.Helper()
		conn, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release()
		for range 6 { // until catalogs are read and plans cached
			wantPurged(t, conn, args, purged{})
		}
		n, took := pagesOf(t, conn, args)
		for tries := 0; tries < 10 && n > 40; tries++ { // autovacuum may invalidate plans
			n, took = pagesOf(t, conn, args)
		}
		if n > 40 {
			t.Errorf("%s: %v pages", name, n)
		} else {
			t.Logf("%s: %v pages, %v ms", name, n, took)
		}
	}
	pages("empty")
	finished(t, pool, "s", 60000, "1 hour")
	planned(t, pool, "w", "1 s", 20000)
	pages("full, with the statistics of the empty one")
	exec(t, pool, "ANALYZE")
	pages("full")
}

// While an old transaction is open, such as a dump, vacuum cannot remove index entries of processed
// keys. A purge that knows the last processed time does not read them again.
func TestPurgeSkipsProcessedKeysWithoutVacuum(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	const all, args = 20000, "since => now() - interval '1 day'"
	finished(t, pool, "s", all, "-2 days")
	old, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = old.Rollback(context.Background()) }() // read-only
	require.Equal(t, all, ask[int](t, old, "SELECT count(*) FROM pawl.command"), "keys")
	wantPurged(t, pool, "batch => 20000", purged{all, 0, 0, 0})
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for range 6 { // until catalogs are read and plans cached
		wantPurged(t, conn, args, purged{})
	}
	n, _ := pagesOf(t, conn, "")
	assert.Truef(t, !(n < 300), "from the beginning: only %v pages", n)
	n, _ = pagesOf(t, conn, args)
	assert.Truef(t, !(n > 40), "since yesterday: %v pages", n)
}

// Commands released by SQL callers cost a purge nothing until their own retention period ends, even
// if others have shorter ones. Expired ones are read in batches.
func TestPurgeSkipsReleasedKeys(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	const many, batch = 5000, 50
	exec(t, pool, "INSERT INTO pawl.horizon (workflow, replay) VALUES ('quick', '1 minute'), ('slow', '30 days')")
	back := func(workflow string, n int) {
		exec(t, pool, fmt.Sprintf(`SELECT pawl.fail('back', k, c.attempt, 'later') FROM (SELECT '%[1]s ' || n AS k
			FROM generate_series(1, %[2]d) AS n) AS g,
			pawl.claim('back', g.k, sha256('x'), '%[1]s') AS c`, workflow, n))
	}
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	const args = "batch => 50, moment => now() + interval '29 days'"
	back("slow", many)
	for _, statistics := range []string{"", "ANALYZE"} {
		exec(t, pool, statistics)
		for range 6 { // until catalogs are read and plans cached
			wantPurged(t, conn, args, purged{})
		}
		if n, took := pagesOf(t, conn, args); n > 40 {
			t.Errorf("%q: %v pages", statistics, n)
		} else {
			t.Logf("%q: %v pages, %v ms", statistics, n, took)
		}
	}
	back("quick", 3*batch)
	for range 3 {
		wantPurged(t, conn, args, purged{0, 0, batch, 0})
	}
	wantPurged(t, conn, args, purged{})
	assert.Equal(t, 3*batch, ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE workflow = 'quick' AND code = 408"), "given up")
	// A claimed command is not abandoned.
	_, err = claimAs(t.Context(), pool, "'back', 'slow 1', sha256('x')")
	assert.NoError(t, err)
	wantPurged(t, conn, "batch => 10000, moment => now() + interval '31 days'", purged{3 * batch, 0, many - 1, 0})
}

// Due commands that stay, because they are decided, paused or timers, cost a call at most a batch, and do not hide others forever.
func TestPurgeReadsStayingCommandsInBatches(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	const batch, stay, timers = 500, 16000, 20000
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	args := func(after string) string {
		return fmt.Sprintf("batch => %d, moment => now() + interval '3 days', decided => '{decided}', after => '%s'", batch, after)
	}
	for range 6 {
		wantPurged(t, conn, args("[]"), purged{})
	}
	exec(t, pool, "INSERT INTO pawl.paused (tenant, workflow, actor, at) VALUES ('default', 'paused', 'ann', now())")
	planned(t, pool, "decided", "0 s", stay) // all due at the same time
	planned(t, pool, "paused", "1 us", stay)
	planned(t, pool, "w", "0 s", stay)
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, paused, chain, created_at,
		updated_at)
		SELECT tenant, instance, workflow, 1, 's', 1, '{}', true, true, sha256('x'), now(), now() FROM pawl.command WHERE workflow = 'w'`)
	planned(t, pool, "quick", "0 s", timers)
	exec(t, pool, "UPDATE pawl.command SET scope = 'pawl:timer' WHERE workflow = 'quick'")
	planned(t, pool, "nobody's", "0 s", 700)

	// Each row may be on its own page, and its instance is found by index. There are more than 50,000 such rows.
	instances := ask[string](t, pool, "SELECT json_build_array(min(run_at))::text FROM pawl.command WHERE workflow = 'w'")
	for _, statistics := range []string{"", "ANALYZE"} {
		exec(t, pool, statistics)
		for _, after := range []string{"[]", instances} {
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			if n, took := pagesOf(t, tx, args(after)); n > 8*batch {
				t.Errorf("%q, after %s: %v pages", statistics, after, n)
			} else {
				t.Logf("%q, after %s: %v pages, %v ms", statistics, after, n, took)
			}
			require.NoError(t, tx.Rollback(t.Context()))
		}
	}
	abandoned, looks := 0, 0
	for after := "[]"; after != ""; looks++ {
		rows, err := conn.Query(t.Context(), "SELECT abandoned, coalesce(passed::text, '') FROM pawl.purge("+
			args(strings.ReplaceAll(after, "'", "''"))+")")
		require.NoError(t, err)
		var n int
		_, err = pgx.ForEachRow(rows, []any{&n, &after}, func() error { abandoned += n; return nil })
		require.NoError(t, err)
	}
	want := (3*stay+700)/batch + 1
	assert.Truef(t, abandoned == 700 && looks == want, "%d are abandoned after %d calls, want 700 after %d", abandoned, looks, want)
}

// planned inserts n scheduled commands that are due from now on in steps.
func planned(t testing.TB, q querier, workflow, step string, n int) {
	t.Helper()
	exec(t, q, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
			phase, attempt, failures, revision, run_at, request, updated_at)
		SELECT 'default', 'planned ' || $1::text, n, sha256('x'), 'pending', $1, 't', gen_random_uuid(), 'a', now(), 'scheduled', 0, 0, 0,
			now() + n * $2::text::interval, '{}', now() FROM generate_series(1, $3::int) AS n`, workflow, step, n)
}

// pagesOf returns the pages that a purge reads, and its duration in milliseconds.
func pagesOf(t testing.TB, q querier, args string) (pages, took float64) {
	t.Helper()
	plan := ask[[]map[string]any](t, q, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM pawl.purge("+args+")")
	top := plan[0]["Plan"].(map[string]any)
	return top["Shared Hit Blocks"].(float64) + top["Shared Read Blocks"].(float64), top["Actual Total Time"].(float64)
}
