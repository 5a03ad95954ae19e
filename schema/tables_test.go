package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// row is a row in SQL, by column.
type row map[string]string

// insert returns the end of an INSERT of the row with some columns changed.
func (r row) insert(change row) string {
	changed := r.with(change)
	names := slices.Sorted(maps.Keys(changed))
	values := make([]string, len(names))
	for i, n := range names {
		values[i] = changed[n]
	}
	return "(" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}

const hash32 = `'\x0000000000000000000000000000000000000000000000000000000000000000'`

// validRows has a valid row of each table.
var validRows = map[string]row{
	"instance": {"tenant": "'t'", "id": "gen_random_uuid()", "workflow": "'w'", "definition": "1", "business_key": "'b'", "state": "'s'",
		"version": "1", "data": "'{}'", "open": "true", "chain": hash32, "created_at": "now()", "updated_at": "now()"},
	"command": {"tenant": "'t'", "scope": "'s'", "key": "'k'", "fingerprint": hash32, "status": "'succeeded'", "workflow": "'w'",
		"transition": "'t'", "instance": "gen_random_uuid()", "version": "1", "actor": "''", "code": "200", "body": "'{}'",
		"created_at": "now()", "finished_at": "now()", "expires_at": "now()"},
	"log": {"tenant": "'t'", "head": "0"},
	"audit": {"tenant": "'t'", "instance": "gen_random_uuid()", "version": "1", "position": "1", "workflow": "'w'", "transition": "'t'",
		"from_state": "NULL", "to_state": "'s'", "actor": "''", "payload": "'{}'", "data": "'{}'", "scope": "'s'", "key": "'k'",
		"at": "now()", "payload_digest": "NULL", "data_digest": "NULL", "hash": hash32},
	"outbox": {"tenant": "'t'", "position": "1", "type": "'w.t'", "ordinal": "0", "workflow": "'w'", "instance": "gen_random_uuid()",
		"version": "1", "transition": "'t'", "state": "'s'", "at": "'2026-11-20'"},
	"definition":    {"workflow": "'w'", "version": "1", "hash": "'h'", "spec": "'{}'"},
	"outbox_sink":   {"name": "'s'"},
	"outbox_cursor": {"tenant": "'t'", "sink": "'s'", "position": "0", "updated_at": "now()"},
	"outbox_dead": {"tenant": "'t'", "sink": "'s'", "position": "1", "type": "'w.t'", "ordinal": "0", "workflow": "'w'",
		"instance": "gen_random_uuid()", "status": "'waiting'", "kind": "'permanent'", "failure": "''", "attempts": "1", "created_at": "now()",
		"updated_at": "now()"},
	"command_history": {"tenant": "'t'", "scope": "'s'", "key": "'k'", "workflow": "'w'", "transition": "'t'", "instance": "gen_random_uuid()",
		"actor": "''", "status": "'succeeded'", "code": "200", "body": "'{}'", "created_at": "now()", "finished_at": "now()",
		"expired_at": "'2026-11-20'"},
	"leadership": {"name": "'d'"},
	"ticket_key": {"id": "gen_random_uuid()"},
	"paused":     {"tenant": "'t'", "workflow": "'w'", "actor": "''", "at": "now()"},
	"begins":     {"workflow": "'w'", "version": "1", "actor": "''", "at": "now()"},
	"instance_migration": {"id": "1", "ended_at": "now()", "created_at": "now()", "expected": "0", "from_version": "1", "to_version": "2",
		"per_second": "1", "workflow": "'w'",
		"actor": "''"},
	"node": {"name": "'n'", "versions": "'{w 1}'", "build": "'pawl'", "begun_at": "now()", "seen_at": "now()"},
	"scope_day": {"tenant": "'t'", "scope": "'s'", "named": "false", "day": "'2026-11-20'", "fresh": "0", "replayed": "0", "active": "0",
		"mismatched": "0", "expired": "0"},
	"horizon": {"workflow": "'w'", "replay": "'1 day'"},
	"api_key": {"id": "'0123456789Ab'", "tenant": "'t'", "name": "'n'", "actor": "'a'", "roles": "'{}'", "grants": "'{read}'", "hash": hash32,
		"created_at": "now()", "created_by": "'a'"},
	"inbox_dead": {"tenant": "'t'", "consumer": "'c'", "message": "'m'", "hash": hash32, "type": "''", "size": "0", "body": "''",
		"status": "'waiting'",
		"code":   "'invalid_payload'", "failure": "''", "deliveries": "1", "created_at": "now()", "updated_at": "now()"},
	"inbox_kept": {"tenant": "'t'", "consumer": "'c'", "message": "'m'", "hash": hash32, "received_at": "now()", "keep_until": "now()",
		"headers": "''", "body": "''"},
}

// partitionOf is the partition of the valid row, by table.
var partitionOf = map[string]string{"outbox": "_2026w47", "command_history": "_2026m11"}

// partitioned returns a database with the partitions for the valid rows.
func partitioned(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	query[int](t, pool, "SELECT pawl.make_partitions('2026-11-20')")
	return pool
}

// inFlight changes the row of a command to one that waits for a worker.
var inFlight = row{"status": "'pending'", "code": "NULL", "body": "NULL", "finished_at": "NULL", "expires_at": "NULL", "phase": "'working'",
	"attempt": "0", "failures": "0", "revision": "0", "run_at": "now()", "request": "'{}'", "updated_at": "now()"}

// leased changes the row of a command to one with a lease.
var leased = inFlight.with(row{"status": "'processing'", "run_at": "NULL", "claimed_by": "'n'", "claimed_at": "now()",
	"locked_until": "now()"})

// stuck changes the row of a command to one that waits for an operator.
var stuck = inFlight.with(row{"status": "'failed_retryable'", "run_at": "NULL", "stuck": "'undo_failed'"})

// held changes the row of a command to one claimed by a SQL caller.
var held = leased.with(row{"phase": "'sql'", "locked_until": "NULL", "held_until": "now()"})

// with returns the row with some columns changed.
func (r row) with(change row) row {
	changed := maps.Clone(r)
	maps.Copy(changed, change)
	return changed
}

func TestCheckConstraintsRejectInvalidRows(t *testing.T) {
	t.Parallel()
	pool := partitioned(t)
	const short = `'\x00'`
	repeat := func(n string) string { return "repeat('x', " + n + ")" }
	cases := []struct {
		table  string
		change row
	}{
		{"instance", row{"tenant": "''"}},
		{"instance", row{"tenant": repeat("65")}},
		{"instance", row{"definition": "0"}},
		{"command", row{"definition": "0"}},
		{"instance_migration", row{"workflow": "''"}},
		{"instance_migration", row{"to_version": "1"}}, // from 1
		{"instance_migration", row{"from_version": "0"}},
		{"instance_migration", row{"to_version": "0"}},
		{"instance_migration", row{"per_second": "0"}},
		{"instance_migration", row{"token": "-1"}},
		{"instance_migration", row{"expected": "-1"}},
		{"instance_migration", row{"proof": "''"}},
		{"instance_migration", row{"key": "''"}},
		{"instance_migration", row{"stopped_at": "now()"}},                   // without an operator
		{"instance_migration", row{"stop_reason": "'r'"}},                    // not stopped
		{"instance_migration", row{"claimed_by": "'n'", "ended_at": "NULL"}}, // without an end
		{"instance_migration", row{"ended_at": "now()", "page": "'[]'"}},     // with work in progress
		{"begins", row{"workflow": "''"}},
		{"begins", row{"version": "0"}},
		{"scope_day", row{"scope": "''"}},
		{"scope_day", row{"tenant": repeat("65")}},
		{"instance", row{"business_key": "''"}},
		{"instance", row{"business_key": repeat("256")}},
		{"instance", row{"business_key": "repeat('é', 128)"}}, // counted in bytes
		{"instance", row{"version": "0"}},
		{"instance", row{"bucket": "-1"}},
		{"instance", row{"bucket": "1"}},
		{"instance", row{"chain": short}},
		{"instance", row{"attributes": "'[]'"}},
		{"instance", row{"attributes": "'{\"a\": [\"b\"]}'"}},
		{"command", row{"scope": "''"}},
		{"command", row{"scope": repeat("256")}},
		{"command", row{"key": "''"}},
		{"command", row{"key": repeat("256")}},
		{"command", row{"fingerprint": short}},
		{"command", row{"status": "'odd'", "body": "NULL", "code": "NULL", "version": "NULL"}},
		{"command", row{"version": "0"}},
		{"command", row{"code": "199"}},
		{"command", row{"code": "600"}},
		{"command", row{"body": "NULL", "code": "NULL"}},           // complete without a result
		{"command", row{"status": "'pending'", "version": "NULL"}}, // a result before completion
		{"command", row{"status": "'expired'", "version": "NULL"}}, // a result after its retention
		{"command", row{"code": "NULL"}},                           // a result without a status
		{"command", row{"finished_at": "NULL"}},                    // completed without a time
		{"command", row{"status": "'expired'", "version": "NULL", "body": "NULL", "code": "NULL", "finished_at": "NULL"}},
		{"command", inFlight.with(row{"phase": "'odd'"})},
		{"command", inFlight.with(row{"attempt": "-1"})},
		{"command", inFlight.with(row{"failures": "-1"})},
		{"command", inFlight.with(row{"revision": "-1"})},
		{"command", row{"phase": "'working'"}}, // completed, but waiting
		{"command", inFlight.with(row{"phase": "NULL"})},
		{"command", inFlight.with(row{"request": "NULL"})}, // cannot be continued
		{"command", inFlight.with(row{"attempt": "NULL"})},
		{"command", inFlight.with(row{"failures": "NULL"})},
		{"command", inFlight.with(row{"revision": "NULL"})},
		{"command", inFlight.with(row{"updated_at": "NULL"})},
		{"command", inFlight.with(row{"locked_until": "now()"})}, // lease without a holder
		{"command", leased.with(row{"locked_until": "NULL"})},    // lease without an end
		{"command", leased.with(row{"claimed_by": "NULL"})},
		{"command", leased.with(row{"claimed_at": "NULL"})},
		{"command", leased.with(row{"run_at": "now()"})},  // due while leased
		{"command", inFlight.with(row{"run_at": "NULL"})}, // never due
		{"command", stuck.with(row{"run_at": "now()"})},
		{"command", stuck.with(row{"status": "'pending'"})},
		{"log", row{"tenant": "''"}},
		{"log", row{"tenant": repeat("65")}},
		{"log", row{"head": "-1"}},
		{"audit", row{"version": "0", "from_state": "'s'"}},
		{"audit", row{"position": "0"}},
		{"audit", row{"hash": short}},
		{"audit", row{"rest_digest": short}},
		{"audit", row{"events_digest": short}},
		{"audit", row{"cause": "'timer'"}}, // implied by the scope
		{"audit", row{"proof": "''"}},      // must be NULL
		{"audit", row{"proof": repeat("513")}},
		{"audit", row{"from_state": "'s'"}}, // the first has no previous state
		{"audit", row{"version": "2"}},      // later ones have a previous state
		{"audit", row{"payload": "NULL"}},   // redacted without a digest
		{"audit", row{"payload_digest": hash32}},
		{"audit", row{"payload": "NULL", "payload_digest": short}},
		{"audit", row{"data": "NULL"}},
		{"audit", row{"data_digest": hash32}},
		{"audit", row{"data": "NULL", "data_digest": short}},
		{"outbox", row{"position": "0"}},
		{"outbox", row{"type": "''"}},
		{"outbox", row{"type": repeat("256")}},
		{"outbox", row{"ordinal": "-1"}},
		{"outbox", row{"payload": "'{}'"}}, // stored in the audit row
		{"outbox", row{"trace": "'00'"}},
		{"outbox", row{"trace": repeat("569")}},
		{"outbox", row{"attributes": "'[]'"}},
		{"outbox", row{"attributes": `'{"n": 1}'`}},
		{"leadership", row{"name": "''"}},
		{"leadership", row{"name": repeat("65")}},
		{"leadership", row{"token": "-1"}},
		{"leadership", row{"claimed_by": "'n'"}}, // without an end
		{"ticket_key", row{"secret": short}},
		{"ticket_key", row{"created_at": "'infinity'"}},
		{"command_history", row{"status": "'expired'"}},
		{"outbox_sink", row{"name": "''"}},
		{"outbox_sink", row{"name": repeat("65")}},
		{"outbox_sink", row{"token": "-1"}},
		{"outbox_sink", row{"revision": "-1"}},
		{"outbox_sink", row{"failures": "-1"}},
		{"outbox_sink", row{"claimed_by": "'n'"}}, // without an end
		{"outbox_sink", row{"paused_at": "now()"}},
		{"outbox_cursor", row{"tenant": "''"}},
		{"outbox_cursor", row{"sink": "''"}},
		{"outbox_cursor", row{"position": "-1"}},
		{"outbox_cursor", row{"revision": "-1"}},
		{"outbox_cursor", row{"moved_at": "now()"}},
		{"outbox_dead", row{"tenant": "''"}},
		{"outbox_dead", row{"sink": "''"}},
		{"outbox_dead", row{"position": "0"}},
		{"outbox_dead", row{"ordinal": "-1"}},
		{"outbox_dead", row{"status": "'odd'"}},
		{"outbox_dead", row{"attempts": "-1"}},
		{"outbox_dead", row{"status": "'skipped'"}}, // without an operator
		{"paused", row{"tenant": "''"}},
		{"paused", row{"tenant": repeat("65")}},
		{"command", held.with(row{"held_until": "NULL"})},                                 // held without an end
		{"command", held.with(row{"locked_until": "now()"})},                              // workers would take it over
		{"command", held.with(row{"claimed_by": "NULL"})},                                 // held without a holder
		{"command", inFlight.with(row{"held_until": "now()"})},                            // not in SQL
		{"command", inFlight.with(row{"paused": "'workflow:w'"})},                         // only scheduled commands
		{"command", row{"held_until": "now()"}},                                           // complete
		{"command", held.with(row{"given_up_at": "now()"})},                               // not released
		{"command", held.with(row{"status": "'failed_retryable'", "held_until": "NULL"})}, // never abandoned
		{"command", inFlight.with(row{"phase": "'sql'"})},                                 // due for workers
		{"horizon", row{"workflow": "''"}},
		{"horizon", row{"workflow": repeat("65")}},
		{"horizon", row{"replay": "'0'"}},
		{"horizon", row{"tombstone": "'-1 second'"}},
		{"horizon", row{"history": "true", "history_kept": "'0'"}},
		{"horizon", row{"history_kept": "'1 day'"}},
		{"inbox_kept", row{"tenant": "''"}},
		{"inbox_kept", row{"tenant": repeat("65")}},
		{"inbox_kept", row{"consumer": "''"}},
		{"inbox_kept", row{"consumer": repeat("250")}},
		{"inbox_kept", row{"message": "''"}},
		{"inbox_kept", row{"message": repeat("256")}},
		{"inbox_kept", row{"hash": short}},
		{"inbox_dead", row{"tenant": "''"}},
		{"inbox_dead", row{"tenant": repeat("65")}},
		{"inbox_dead", row{"consumer": "''"}},
		{"inbox_dead", row{"consumer": repeat("250")}},
		{"inbox_dead", row{"message": "''"}},
		{"inbox_dead", row{"message": repeat("256")}},
		{"inbox_dead", row{"hash": short}},
		{"inbox_dead", row{"size": "-1", "body": "NULL"}},
		{"inbox_dead", row{"size": "1"}}, // of an empty body
		{"inbox_dead", row{"status": "'gone'", "changed_by": "'a'"}},
		{"inbox_dead", row{"status": "'discarded'"}}, // without an operator
		{"inbox_dead", row{"deliveries": "0"}},
		{"inbox_dead", row{"business_key": "''"}},
		{"api_key", row{"id": "'0123456789A'"}},
		{"api_key", row{"id": "'0123456789A-'"}},
		{"api_key", row{"tenant": "''"}},
		{"api_key", row{"tenant": repeat("65")}},
		{"api_key", row{"name": "''"}},
		{"api_key", row{"name": repeat("101")}},
		{"api_key", row{"actor": "''"}},
		{"api_key", row{"actor": repeat("256")}},
		{"api_key", row{"roles": "'{NULL}'"}},
		{"api_key", row{"roles": "array_fill('r'::text, '{65}')"}},
		{"api_key", row{"grants": "'{}'"}}, // without grants
		{"api_key", row{"grants": "'{NULL}'"}},
		{"api_key", row{"hash": short}},
		{"api_key", row{"former_hash": short, "former_ends": "now()"}},
		{"api_key", row{"former_hash": hash32}}, // without an expiry
		{"api_key", row{"former_ends": "now()"}},
		{"api_key", row{"created_by": "''"}},
		{"api_key", row{"rotated_at": "now()"}}, // without an operator
		{"api_key", row{"rotated_at": "now()", "rotated_by": "''"}},
		{"api_key", row{"revoked_at": "now()"}}, // without an operator
		{"api_key", row{"revoked_at": "now()", "revoked_by": "''"}},
		{"api_key", row{"revoked_at": "now()", "revoked_by": "'a'", "former_hash": hash32, "former_ends": "now()"}},
		{"api_key", row{"last_used_at": "'2026-11-20 12:00:01'"}}, // to the minute
		{"api_key", row{"revision": "-1"}},
		{"api_key", row{"expires_at": "now()"}}, // before the creation
	}
	hit := map[string]bool{}
	for _, c := range cases {
		_, err := pool.Exec(t.Context(), "INSERT INTO pawl."+c.table+" "+validRows[c.table].insert(c.change))
		e, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || e.Code != "23514" {
			t.Errorf("%s with %v: %v, want a check violation", c.table, c.change, err)
			continue
		}
		hit[e.ConstraintName] = true
	}
	found, err := pool.Query(t.Context(), `SELECT conrelid::regclass || ': ' || pg_get_constraintdef(oid), conname FROM pg_constraint
		WHERE connamespace = 'pawl'::regnamespace AND contype = 'c'`)
	require.NoError(t, err)
	var definition, name string
	if _, err := pgx.ForEachRow(found, []any{&definition, &name}, func() error {
		assert.Truef(t, hit[name], "no bad row here violates %s", definition)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// The CHECKs are not stricter than described.
func TestCommandIsStorableInEveryStatus(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for i, change := range []row{
		{}, {"status": "'failed_final'", "code": "409"}, {"version": "NULL"}, // accepted and failed; changed nothing
		{"status": "'expired'", "body": "NULL", "code": "NULL"},
		inFlight, inFlight.with(row{"phase": "'scheduled'"}), inFlight.with(row{"phase": "'undoing'", "version": "NULL"}), leased, stuck,
		inFlight.with(row{"status": "'failed_retryable'", "claimed_by": "'n'", "claimed_at": "now()", "cancelled_by": "'ann'",
			"progress": "'{}'"}),
	} {
		key := row{"key": fmt.Sprintf("'k%d'", i)}
		_, err := pool.Exec(t.Context(), "INSERT INTO pawl.command "+validRows["command"].insert(change.with(key)))
		assert.NoError(t, err, change)
	}
}

func TestTablesAcceptValidRowOnce(t *testing.T) {
	t.Parallel()
	pool := partitioned(t)
	const id = "'01936b0e-0000-7000-8000-000000000001'"
	for table, good := range validRows {
		same := row{}
		for _, c := range []string{"id", "instance"} {
			if good[c] == "gen_random_uuid()" {
				same[c] = id
			}
		}
		insert := "INSERT INTO pawl." + table + " " + good.insert(same)
		if _, err := pool.Exec(t.Context(), insert); err != nil {
			t.Errorf("%s: %v", table, err)
		}
		_, err := pool.Exec(t.Context(), insert)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "23505" || e.ConstraintName != table+partitionOf[table]+"_pkey" {
			t.Errorf("%s twice: %v, want a violation of its primary key", table, err)
		}
	}
}

func TestTablesAndColumnsHaveComments(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	found, err := pool.Query(t.Context(), `
		SELECT c.relname || coalesce('.' || a.attname, '')
		FROM pg_class c
		JOIN (SELECT attrelid, attnum, attname FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped
			UNION ALL SELECT oid, 0, NULL FROM pg_class) a ON a.attrelid = c.oid
		LEFT JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = a.attnum
		WHERE c.relnamespace = 'pawl'::regnamespace AND c.relkind IN ('r', 'p', 'S', 'v') AND NOT (c.relkind = 'S' AND a.attnum > 0)
			AND coalesce(d.description, '') = ''
		UNION ALL
		SELECT p.oid::regprocedure::text FROM pg_proc p
		WHERE p.pronamespace = 'pawl'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL
		ORDER BY 1`)
	require.NoError(t, err)
	missing, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	assert.Emptyf(t, missing, "without a comment: %s", strings.Join(missing, ", "))
}

func TestPrimaryKeysBeginWithTenant(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	found, err := pool.Query(t.Context(), `
		SELECT c.relname || ' (' || pg_get_indexdef(i.indexrelid) || ')'
		FROM pg_index i
		JOIN pg_class c ON c.oid = i.indrelid
		JOIN pg_attribute t ON t.attrelid = c.oid AND t.attname = 'tenant'
		WHERE c.relnamespace = 'pawl'::regnamespace AND i.indisunique AND i.indkey[0] <> t.attnum
			AND i.indexrelid <> 'pawl.api_key_pkey'::regclass -- by which it is found whose the key is`)
	require.NoError(t, err)
	bad, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(t, err)
	assert.Emptyf(t, bad, "these unique indexes do not begin with the tenant: %s", strings.Join(bad, "; "))
}

func TestExpectRaisesSerializationFailure(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	assert.Equal(t, int64(3), query[int64](t, pool, "SELECT pawl.expect(3, 3)"))
	_, err := pool.Exec(t.Context(), "SELECT pawl.expect(2, 3)")
	e, ok := errors.AsType[*pgconn.PgError](err)
	assert.Truef(t, ok && e.Code == "40001", "got %v, want 40001", err)
}
