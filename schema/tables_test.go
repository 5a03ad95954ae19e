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
		"per_second": "1", "workflow": "'w'", "actor": "''"},
	"node": {"name": "'n'", "versions": "'{w 1}'", "build": "'pawl'", "begun_at": "now()", "seen_at": "now()"},
	"scope_day": {"tenant": "'t'", "scope": "'s'", "named": "false", "day": "'2026-11-20'", "fresh": "0", "replayed": "0", "active": "0",
		"mismatched": "0", "expired": "0"},
	"schedule": {"tenant": "'t'", "name": "'n'", "instance": "gen_random_uuid()", "revision": "1", "plan": "'{}'", "paused": "false",
		"last_at": "now()"},
	"horizon": {"workflow": "'w'", "replay": "'1 day'"},
	"api_key": {"id": "'0123456789Ab'", "tenant": "'t'", "name": "'n'", "actor": "'a'", "roles": "'{}'", "grants": "'{read}'", "hash": hash32,
		"created_at": "now()", "created_by": "'a'"},
	"inbox_dead": {"tenant": "'t'", "consumer": "'c'", "message": "'m'", "hash": hash32, "type": "''", "size": "0", "body": "''",
		"status": "'waiting'", "code": "'invalid_payload'", "failure": "''", "deliveries": "1", "created_at": "now()", "updated_at": "now()"},
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
	cases := map[string][]row{
		"instance": {
			{"tenant": "''"}, {"tenant": repeat("65")}, {"definition": "0"}, {"business_key": "''"}, {"business_key": repeat("256")},
			{"business_key": "repeat('é', 128)"}, {"version": "0"}, {"bucket": "-1"}, {"bucket": "1"}, {"chain": short}, {"attributes": "'[]'"},
			{"attributes": "'{\"a\": [\"b\"]}'"},
		},
		"command": {
			{"definition": "0"}, {"scope": "''"}, {"scope": repeat("256")}, {"key": "''"}, {"key": repeat("256")}, {"fingerprint": short},
			{"status": "'odd'", "body": "NULL", "code": "NULL", "version": "NULL"}, {"version": "0"}, {"code": "199"}, {"code": "600"},
			{"body": "NULL", "code": "NULL"}, {"status": "'pending'", "version": "NULL"}, {"status": "'expired'", "version": "NULL"},
			{"code": "NULL"}, {"finished_at": "NULL"},
			{"status": "'expired'", "version": "NULL", "body": "NULL", "code": "NULL", "finished_at": "NULL"},
			inFlight.with(row{"phase": "'odd'"}), inFlight.with(row{"attempt": "-1"}), inFlight.with(row{"failures": "-1"}),
			inFlight.with(row{"revision": "-1"}), {"phase": "'working'"}, inFlight.with(row{"phase": "NULL"}),
			inFlight.with(row{"request": "NULL"}), inFlight.with(row{"attempt": "NULL"}), inFlight.with(row{"failures": "NULL"}),
			inFlight.with(row{"revision": "NULL"}), inFlight.with(row{"updated_at": "NULL"}), inFlight.with(row{"locked_until": "now()"}),
			leased.with(row{"locked_until": "NULL"}), leased.with(row{"claimed_by": "NULL"}), leased.with(row{"claimed_at": "NULL"}),
			leased.with(row{"run_at": "now()"}), inFlight.with(row{"run_at": "NULL"}), stuck.with(row{"run_at": "now()"}),
			stuck.with(row{"status": "'pending'"}), held.with(row{"held_until": "NULL"}), held.with(row{"locked_until": "now()"}),
			held.with(row{"claimed_by": "NULL"}), inFlight.with(row{"held_until": "now()"}), inFlight.with(row{"paused": "'workflow:w'"}),
			{"held_until": "now()"}, held.with(row{"given_up_at": "now()"}), held.with(row{"status": "'failed_retryable'", "held_until": "NULL"}),
			inFlight.with(row{"phase": "'sql'"}),
		},
		"instance_migration": {
			{"workflow": "''"}, {"to_version": "1"}, {"from_version": "0"}, {"to_version": "0"}, {"per_second": "0"}, {"token": "-1"},
			{"expected": "-1"}, {"proof": "''"}, {"key": "''"}, {"stopped_at": "now()"}, {"stop_reason": "'r'"},
			{"claimed_by": "'n'", "ended_at": "NULL"}, {"ended_at": "now()", "page": "'[]'"},
		},
		"begins": {
			{"workflow": "''"}, {"version": "0"},
		},
		"schedule": {
			{"name": "''"}, {"tenant": repeat("65")}, {"revision": "0"}, {"running_key": "'k'"},
		},
		"scope_day": {
			{"scope": "''"}, {"tenant": repeat("65")},
		},
		"log": {
			{"tenant": "''"}, {"tenant": repeat("65")}, {"head": "-1"},
		},
		"audit": {
			{"version": "0", "from_state": "'s'"}, {"position": "0"}, {"hash": short}, {"rest_digest": short}, {"events_digest": short},
			{"cause": "'timer'"}, {"proof": "''"}, {"proof": repeat("513")}, {"from_state": "'s'"}, {"version": "2"}, {"payload": "NULL"},
			{"payload_digest": hash32}, {"payload": "NULL", "payload_digest": short}, {"data": "NULL"}, {"data_digest": hash32},
			{"data": "NULL", "data_digest": short},
		},
		"outbox": {
			{"position": "0"}, {"type": "''"}, {"type": repeat("256")}, {"ordinal": "-1"}, {"payload": "'{}'"}, {"trace": "'00'"},
			{"trace": repeat("569")}, {"attributes": "'[]'"}, {"attributes": `'{"n": 1}'`},
		},
		"leadership": {
			{"name": "''"}, {"name": repeat("65")}, {"token": "-1"}, {"claimed_by": "'n'"},
		},
		"ticket_key": {
			{"secret": short}, {"created_at": "'infinity'"},
		},
		"command_history": {{"status": "'expired'"}},
		"outbox_sink": {
			{"name": "''"}, {"name": repeat("65")}, {"token": "-1"}, {"revision": "-1"}, {"failures": "-1"}, {"claimed_by": "'n'"},
			{"paused_at": "now()"},
		},
		"outbox_cursor": {
			{"tenant": "''"}, {"sink": "''"}, {"position": "-1"}, {"revision": "-1"}, {"moved_at": "now()"},
		},
		"outbox_dead": {
			{"tenant": "''"}, {"sink": "''"}, {"position": "0"}, {"ordinal": "-1"}, {"status": "'odd'"}, {"attempts": "-1"},
			{"status": "'skipped'"},
		},
		"paused": {
			{"tenant": "''"}, {"tenant": repeat("65")},
		},
		"horizon": {
			{"workflow": "''"}, {"workflow": repeat("65")}, {"replay": "'0'"}, {"tombstone": "'-1 second'"},
			{"history": "true", "history_kept": "'0'"}, {"history_kept": "'1 day'"},
		},
		"inbox_kept": {
			{"tenant": "''"}, {"tenant": repeat("65")}, {"consumer": "''"}, {"consumer": repeat("250")}, {"message": "''"},
			{"message": repeat("256")}, {"hash": short},
		},
		"inbox_dead": {
			{"tenant": "''"}, {"tenant": repeat("65")}, {"consumer": "''"}, {"consumer": repeat("250")}, {"message": "''"},
			{"message": repeat("256")}, {"hash": short}, {"size": "-1", "body": "NULL"}, {"size": "1"}, {"status": "'gone'", "changed_by": "'a'"},
			{"status": "'discarded'"}, {"deliveries": "0"}, {"business_key": "''"},
		},
		"api_key": {
			{"id": "'0123456789A'"}, {"id": "'0123456789A-'"}, {"tenant": "''"}, {"tenant": repeat("65")}, {"name": "''"},
			{"name": repeat("101")}, {"actor": "''"}, {"actor": repeat("256")}, {"roles": "'{NULL}'"}, {"roles": "array_fill('r'::text, '{65}')"},
			{"grants": "'{}'"}, {"grants": "'{NULL}'"}, {"hash": short}, {"former_hash": short, "former_ends": "now()"}, {"former_hash": hash32},
			{"former_ends": "now()"}, {"created_by": "''"}, {"rotated_at": "now()"}, {"rotated_at": "now()", "rotated_by": "''"},
			{"revoked_at": "now()"}, {"revoked_at": "now()", "revoked_by": "''"},
			{"revoked_at": "now()", "revoked_by": "'a'", "former_hash": hash32, "former_ends": "now()"},
			{"last_used_at": "'2026-11-20 12:00:01'"}, {"revision": "-1"}, {"expires_at": "now()"},
		},
	}
	hit := map[string]bool{}
	for table, changes := range cases {
		for _, change := range changes {
			_, err := pool.Exec(t.Context(), "INSERT INTO pawl."+table+" "+validRows[table].insert(change))
			e, ok := errors.AsType[*pgconn.PgError](err)
			if assert.Truef(t, ok && e.Code == "23514", "%s with %v: %v, want a check violation", table, change, err) {
				hit[e.ConstraintName] = true
			}
		}
	}
	found, err := pool.Query(t.Context(), `SELECT conrelid::regclass || ': ' || pg_get_constraintdef(oid), conname FROM pg_constraint
		WHERE connamespace = 'pawl'::regnamespace AND contype = 'c'`)
	require.NoError(t, err)
	var definition, name string
	require.NoError(t, errOf(pgx.ForEachRow(found, []any{&definition, &name}, func() error {
		assert.Truef(t, hit[name], "no bad row here violates %s", definition)
		return nil
	})))
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
		assert.NoError(t, errOf(pool.Exec(t.Context(), "INSERT INTO pawl.command "+validRows["command"].insert(change.with(key)))), change)
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
		e, ok := errors.AsType[*pgconn.PgError](err)
		assert.Truef(t, ok && e.Code == "23505" && e.ConstraintName == table+partitionOf[table]+"_pkey",
			"%s twice: %v, want a violation of its primary key", table, err)
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
