package schema_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// reads are what a transaction has read of a table so far, as the server counts.
type reads struct {
	Table    string
	SeqScans int64
	Rows     int64 // found by an index
}

// Whatever the server believes about the tables, empty or full, the contract finds
// its rows by index, and reads no more of them than it needs.
func TestTheContractReadsByIndexOnEmptyAndOnFullTables(t *testing.T) {
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

// few are enough for a command, its row found more than once.
const few = 8

// readByIndex calls every function in a transaction of its own, in which due
// commands can be purged.
func readByIndex(t *testing.T, pool *pgxpool.Pool, due int64) {
	const place = `SELECT pawl.transition('new', 'k', c.attempt, 0, 'placed', '{}', '{}', business_key => 'b')
		FROM pawl.claim('new', 'k', sha256('x'), 'order', 'place', pawl.instance_id('order', 'b')) AS c`
	for _, tt := range []struct {
		name, sql string
		most      int64  // rows of one table
		only      string // that table; "" each
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
		// What a session has read is its own until it tells the server, which it does
		// between transactions: so each has one.
		conn, err := pgx.Connect(t.Context(), pgtest.Direct(t, pool.Config().ConnString()))
		if err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "BEGIN; "+tt.sql)
		rows, err := conn.Query(t.Context(), `SELECT relname, seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables
			WHERE relname IN ('command', 'instance', 'audit', 'log') OR relname LIKE 'outbox\_2%'`)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[reads])
		if err != nil {
			t.Fatal(err)
		}
		if len(list) < 5 {
			t.Fatalf("counted %v", list)
		}
		for _, r := range list {
			if tt.only != "" && tt.only != r.Table {
				continue
			}
			if r.SeqScans > 0 || r.Rows > tt.most {
				t.Errorf("%s: %s", tt.name, fmt.Sprintf("%+v", r))
			}
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A purge that finds nothing to do looks at one end of an index, however much
// there is: its cost is a few pages, with and without statistics.
func TestAPurgeWithNothingDueReadsAFewPages(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	const args = "moment => now() - interval '1 day', decided => '{decided}'"
	pages := func(name string) {
		t.Helper()
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		for range 6 { // until it has read the catalogs, and keeps its plans
			wantPurged(t, conn, args, purged{})
		}
		n, took := pagesOf(t, conn, args)
		for tries := 0; tries < 10 && n > 40; tries++ { // autovacuum may have come by, so that it has planned again
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

// As long as an old transaction is open, such as a dump, no vacuum removes what
// every key that was seen to leaves in the index. Who knows since when to look
// does not read that again and again.
func TestAPurgeReadsNothingThatWasSeenToWhileNoVacuumCan(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	const all, args = 20000, "since => now() - interval '1 day'"
	finished(t, pool, "s", all, "-2 days")
	old, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Rollback(context.Background()) }() // it has only read
	if n := ask[int](t, old, "SELECT count(*) FROM pawl.command"); n != all {
		t.Fatalf("%d keys", n)
	}
	wantPurged(t, pool, "batch => 20000", purged{all, 0, 0, 0})
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for range 6 { // until it has read the catalogs, and keeps its plans
		wantPurged(t, conn, args, purged{})
	}
	if n, _ := pagesOf(t, conn, ""); n < 300 {
		t.Errorf("from the beginning: only %v pages", n)
	}
	if n, _ := pagesOf(t, conn, args); n > 40 {
		t.Errorf("since yesterday: %v pages", n)
	}
}

// What SQL callers have given back, and may claim for days to come, costs a purge
// nothing, however short the horizons of others are; what is past its own is read a
// batch at a time.
func TestAPurgeReadsNothingThatWasGivenBackAndIsNotPastItsHorizon(t *testing.T) {
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
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	const args = "batch => 50, moment => now() + interval '29 days'"
	back("slow", many)
	for _, statistics := range []string{"", "ANALYZE"} {
		exec(t, pool, statistics)
		for range 6 { // until it has read the catalogs, and keeps its plans
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
	if n := ask[int](t, pool, "SELECT count(*) FROM pawl.command WHERE workflow = 'quick' AND code = 408"); n != 3*batch {
		t.Errorf("%d are given up", n)
	}
	// Who claims one has it, and it is not given up.
	if _, err := claimAs(t.Context(), pool, "'back', 'slow 1', sha256('x')"); err != nil {
		t.Error(err)
	}
	wantPurged(t, conn, "batch => 10000, moment => now() + interval '31 days'", purged{3 * batch, 0, many - 1, 0})
}

// What stays though it is due, because it is decided or paused or a timer, costs a
// call no more than a batch of it, and hides nobody for ever.
func TestAPurgeReadsABatchOfWhatIsDueAndStays(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	const batch, stay, timers = 500, 16000, 20000
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	args := func(after string) string {
		return fmt.Sprintf("batch => %d, moment => now() + interval '3 days', decided => '{decided}', after => '%s'", batch, after)
	}
	for range 6 {
		wantPurged(t, conn, args("[]"), purged{})
	}
	exec(t, pool, "INSERT INTO pawl.paused (tenant, workflow, actor, at) VALUES ('default', 'paused', 'ann', now())")
	planned(t, pool, "decided", "0 s", stay) // all due at one time
	planned(t, pool, "paused", "1 us", stay)
	planned(t, pool, "w", "0 s", stay)
	exec(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, paused, chain, created_at,
		updated_at)
		SELECT tenant, instance, workflow, 1, 's', 1, '{}', true, true, sha256('x'), now(), now() FROM pawl.command WHERE workflow = 'w'`)
	planned(t, pool, "quick", "0 s", timers)
	exec(t, pool, "UPDATE pawl.command SET scope = 'pawl:timer' WHERE workflow = 'quick'")
	planned(t, pool, "nobody's", "0 s", 700)

	// Each row may be on a page of its own, and its instance is found by its index.
	// All that stays has more than 50,000 rows.
	instances := ask[string](t, pool, "SELECT json_build_array(min(run_at))::text FROM pawl.command WHERE workflow = 'w'")
	for _, statistics := range []string{"", "ANALYZE"} {
		exec(t, pool, statistics)
		for _, after := range []string{"[]", instances} {
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n, took := pagesOf(t, tx, args(after)); n > 8*batch {
				t.Errorf("%q, after %s: %v pages", statistics, after, n)
			} else {
				t.Logf("%q, after %s: %v pages, %v ms", statistics, after, n, took)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	abandoned, looks := 0, 0
	for after := "[]"; after != ""; looks++ {
		rows, err := conn.Query(t.Context(), "SELECT abandoned, coalesce(passed::text, '') FROM pawl.purge("+
			args(strings.ReplaceAll(after, "'", "''"))+")")
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := pgx.ForEachRow(rows, []any{&n, &after}, func() error { abandoned += n; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if want := (3*stay+700)/batch + 1; abandoned != 700 || looks != want {
		t.Errorf("%d are abandoned after %d calls, want 700 after %d", abandoned, looks, want)
	}
}

// planned inserts n scheduled commands, due from now on in steps.
func planned(t testing.TB, q querier, workflow, step string, n int) {
	t.Helper()
	exec(t, q, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
			phase, attempt, failures, revision, run_at, request, updated_at)
		SELECT 'default', 'planned ' || $1::text, n, sha256('x'), 'pending', $1, 't', gen_random_uuid(), 'a', now(), 'scheduled', 0, 0, 0,
			now() + n * $2::text::interval, '{}', now() FROM generate_series(1, $3::int) AS n`, workflow, step, n)
}

// pagesOf counts the pages that a purge reads, and the milliseconds that it takes.
func pagesOf(t testing.TB, q querier, args string) (pages, took float64) {
	t.Helper()
	plan := ask[[]map[string]any](t, q, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM pawl.purge("+args+")")
	top := plan[0]["Plan"].(map[string]any)
	return top["Shared Hit Blocks"].(float64) + top["Shared Read Blocks"].(float64), top["Actual Total Time"].(float64)
}
