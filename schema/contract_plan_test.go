package schema_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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
	exec(t, pool, `INSERT INTO pawl.inbox SELECT 'default', 'c', n, sha256('x'), now(), now() + n * interval '1 s' - interval '1000 s' FROM generate_series(1, 20000) n;
		INSERT INTO pawl.instance (tenant, id, workflow, definition, state, version, data, open, chain, created_at, updated_at)
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
// commands and messages can be purged.
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
		{"succeed", "SELECT pawl.claim('new', 'k', sha256('x')); SELECT pawl.succeed('new', 'k', 1); SELECT pawl.claim('new', 'k', sha256('x'))", few, ""},
		{"fail", "SELECT pawl.claim('new', 'k', sha256('x')); SELECT pawl.fail('new', 'k', 1, 'x'); SELECT pawl.claim('new', 'k', sha256('x'))", few, ""},
		{"transition", place + "; SET CONSTRAINTS ALL IMMEDIATE", few, ""},
		{"transition again", place + `; SELECT pawl.transition('new', 'l', c.attempt, 1, 'shipped', '{}')
			FROM pawl.claim('new', 'l', sha256('x'), 'order', 'ship', pawl.instance_id('order', 'b')) AS c`, few, ""},
		{"consume", "SELECT pawl.consume('new', 'k', sha256('x')); SELECT pawl.consume('new', 'k', sha256('x'))", few, ""},
		{"purge", "SELECT pawl.purge(100)", 3 * due, ""},
		{"purge with nothing due", "SELECT pawl.purge(100, '100 days')", 0, "command"},
	} {
		// What a session has read is its own until it tells the server, which it does
		// between transactions: so each has one.
		conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "BEGIN; "+tt.sql)
		rows, err := conn.Query(t.Context(), `SELECT relname, seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables
			WHERE relname IN ('command', 'instance', 'audit', 'outbox', 'inbox', 'log')`)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[reads])
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 6 {
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
