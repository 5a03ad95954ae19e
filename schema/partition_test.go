package schema_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

// event inserts an event. Parameters: position, time.
const event = `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
	VALUES ('t', $1, 'e', 0, 'w', gen_random_uuid(), 1, 't', 's', $2)`

func partitions(t testing.TB, q querier, parent string) []string {
	t.Helper()
	return ask[[]string](t, q, `SELECT coalesce(array_agg(c.relname || ' ' || pg_get_expr(c.relpartbound, c.oid) ORDER BY c.relname), '{}')
		FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = $1::regclass`, "pawl."+parent)
}

// A week begins on Monday and a month on its first day, in UTC, whatever the session's settings.
func TestPartitionBoundsAreUTC(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for zone, style := range map[string]string{"UTC": "ISO", "Europe/Vienna": "German", "Pacific/Kiritimati": "ISO",
		"America/Los_Angeles": "Postgres, MDY",
		"Asia/Kolkata":        "SQL, DMY", "Asia/Jakarta": "SQL, MDY"} { // where names of zones are ambiguous or unknown
		exec(t, conn, "SET TimeZone = '"+zone+"'; SET DateStyle = '"+style+"'")
		for at, want := range map[string]string{
			"2020-12-31 23:59:59Z": "2020w53 from 2020-12-28 to 2021-01-04", "2021-01-03 23:59:59Z": "2020w53 from 2020-12-28 to 2021-01-04",
			"2021-01-04 00:00Z": "2021w01 from 2021-01-04 to 2021-01-11", "2026-03-29 01:30Z": "2026w13 from 2026-03-23 to 2026-03-30"} {
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			exec(t, tx, "SELECT pawl.make_partition('outbox', $1)", at)
			exec(t, tx, "SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'")
			name, from, to := want[:7], want[13:23], want[27:]
			assert.Containsf(t, partitions(t, tx, "outbox"), fmt.Sprintf("outbox_%s FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')", name,
				from, to), "in %s, %s: want %s of", zone, at, want)
			require.NoError(t, tx.Rollback(t.Context()))
		}
		exec(t, conn, "SELECT pawl.make_partitions('2031-01-01', '2031-02-15')")
	}
	exec(t, conn, "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'")
	got := partitions(t, conn, "command_history")
	assert.Truef(t, len(got) >= 3 && slices.Contains(got,
		"command_history_2031m02 FOR VALUES FROM ('2031-02-01 00:00:00+00') TO ('2031-03-01 00:00:00+00')"), "%v", got)
}

// Attaching a partition does not block readers and writers of events, nor do they block it.
func TestPartitionCreationDoesNotBlockEvents(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	writer := begin(t, pool)
	exec(t, writer, event, 1, time.Now())
	maker := begin(t, pool)
	exec(t, maker, "SET LOCAL lock_timeout = '1s'; SELECT pawl.make_partition('outbox', '2044-01-01')")
	exec(t, writer, event, 2, time.Now())
	assert.Equal(t, 2, ask[int](t, writer, "SELECT count(*) FROM pawl.outbox"), "events")
	commit(t, maker)
	exec(t, writer, "SELECT FROM pawl.definition") // with a new kind of lock, a session receives the changes of others
	exec(t, writer, event, 3, "2044-01-01")
	commit(t, writer)
}

func TestInsertFailsWithoutPartition(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, at := range []string{"0001-01-01", "1999-12-31", "2044-01-01", "9999-12-31"} {
		e := refused(t, pool, "23514", event, 1, at)
		assert.Truef(t, e.ConstraintName == "" && e.TableName == "outbox" && e.SchemaName == schema.Default, "%+v", e)
		for _, want := range []bool{true, false} {
			assert.Equalf(t, want, ask[bool](t, pool, "SELECT pawl.make_partition('outbox', $1)", at), "%s: made", at)
		}
		exec(t, pool, event, 1, at)
	}
	for _, args := range []string{"'outbox', 'infinity'", "'command', now()", "NULL, now()", "'outbox', NULL"} {
		refused(t, pool, "22023", "SELECT pawl.make_partition("+args+")")
	}
	refused(t, pool, "22023", "SELECT pawl.make_partitions('2044-01-01', '2046-01-01')")
	refused(t, pool, "22023", "SELECT pawl.make_partitions('2044-01-02', '2044-01-01')")
}

// A transaction that commits while the partition of its events is being detached must not lose them.
func TestCommitFailsDuringRemoval(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	exec(t, pool, "SELECT pawl.make_partition('outbox', '2020-01-01')")
	tx := begin(t, pool)
	exec(t, tx, event, -5, "2020-01-01")
	exec(t, tx, `INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, to_state, actor, payload, data, scope, key,
		at, hash)
		VALUES ('t', gen_random_uuid(), 1, -5, 'w', 't', 's', 'ann', '{}', '{}', 's', 'k', '2020-01-01', sha256('x'))`)
	detached := background(t, pool, func(conn *pgxpool.Conn) (struct{}, error) {
		_, err := conn.Exec(t.Context(), "ALTER TABLE pawl.outbox DETACH PARTITION pawl.outbox_2020w01 CONCURRENTLY")
		return struct{}{}, err
	})
	err := tx.Commit(t.Context())
	raised(t, err, "40001")
	assert.NoError(t, (<-detached).err)
	assert.Equal(t, 0, ask[int](t, pool, "SELECT count(*) FROM pawl.audit"), "transitions without events")
}

// A role that may create partitions cannot fill the database with tables, and one that may remove them only removes expired ones.
func TestPartitionRightsAreLimited(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	role := fmt.Sprintf("shop_%d", time.Now().UnixNano())
	exec(t, pool, fmt.Sprintf("CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA pawl TO %[1]s; GRANT SELECT, INSERT, UPDATE ON pawl.outbox TO %[1]s",
		role))
	defer exec(t, pool, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	exec(t, pool, "SELECT pawl.make_partition('outbox', '2044-01-01'); ALTER TABLE pawl.outbox DETACH PARTITION pawl.outbox_2043w53")
	as := func(sql string) error {
		tx := begin(t, pool)
		exec(t, tx, "SET LOCAL ROLE "+role)
		_, err := tx.Exec(t.Context(), sql)
		require.NoError(t, tx.Rollback(t.Context()))
		return err
	}
	const soon = "SELECT pawl.make_partition('outbox', now() + interval '11 months')"
	raised(t, as(soon), "42501")
	exec(t, pool, "GRANT EXECUTE ON FUNCTION pawl.make_partition TO "+role)
	assert.NoError(t, as(soon))
	for _, at := range []string{"now() + interval '13 months'", "now() - interval '13 months'", "'0001-01-01'", "'2044-01-08'"} {
		raised(t, as("SELECT pawl.make_partition('outbox', "+at+")"), "22023")
	}
	assert.NoError(t, as("SELECT pawl.make_partition('outbox', '2044-01-01')"), "one that was detached is not attached again")
	exec(t, pool, "SELECT pawl.make_partition('outbox', '2020-01-01')")
	for _, sql := range []string{"SELECT pawl.detach_partition('outbox_2020w01')", "SELECT pawl.drop_partition('outbox_2020w01')"} {
		raised(t, as(sql), "42501")
	}
	exec(t, pool, "GRANT EXECUTE ON FUNCTION pawl.detach_partition, pawl.drop_partition TO "+role)
	for _, sql := range []string{"SELECT pawl.detach_partition('outbox_2043w53')", "SELECT pawl.drop_partition('outbox_2043w53')"} {
		raised(t, as(sql), "42501")
	}
	raised(t, as("SELECT pawl.drop_partition('outbox')"), "22023")
	assert.NoError(t, as("SELECT pawl.detach_partition('outbox_2020w01'), pawl.drop_partition('outbox_2020w01')"), "one whose time is over")
	assert.True(t, ask[bool](t, pool, "SELECT pawl.drop_partition('outbox_2043w53')"), "the owner does not drop it")
}
