package schema_test

import (
	"fmt"
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
	pool := pgtest.Pool(t)
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
	pool := pgtest.Pool(t)
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
