package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
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
	pool := contract(t)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for zone, style := range map[string]string{"UTC": "ISO", "Europe/Vienna": "German", "Pacific/Kiritimati": "ISO",
		"America/Los_Angeles": "Postgres, MDY",
		"Asia/Kolkata":        "SQL, DMY", "Asia/Jakarta": "SQL, MDY"} { // where names of zones are ambiguous or unknown
		exec(t, conn, "SET TimeZone = '"+zone+"'; SET DateStyle = '"+style+"'")
		for at, want := range map[string]string{
			"2020-12-31 23:59:59Z": "2020w53 from 2020-12-28 to 2021-01-04", "2021-01-03 23:59:59Z": "2020w53 from 2020-12-28 to 2021-01-04",
			"2021-01-04 00:00Z": "2021w01 from 2021-01-04 to 2021-01-11", "2026-03-29 01:30Z": "2026w13 from 2026-03-23 to 2026-03-30",
		} {
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			exec(t, tx, "SELECT pawl.make_partition('outbox', $1)", at)
			exec(t, tx, "SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'")
			name, from, to := want[:7], want[13:23], want[27:]
			assert.Containsf(t, partitions(t, tx, "outbox"),
				fmt.Sprintf("outbox_%s FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')", name,
					from, to), "in %s, %s: want %s of", zone, at, want)
			require.NoError(t, tx.Rollback(t.Context()))
		}
		exec(t, conn, "SELECT pawl.make_partitions('2031-01-01', '2031-02-15')")
	}
	exec(t, conn, "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'")
	if got := partitions(t, conn, "command_history"); len(got) < 3 ||
		!slices.Contains(got, "command_history_2031m02 FOR VALUES FROM ('2031-02-01 00:00:00+00') TO ('2031-03-01 00:00:00+00')") {
		t.Errorf("%v", got)
	}
}

func TestPartitionIsCreatedOnce(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	made := make([]int, 6)
	var sessions sync.WaitGroup
	for i := range made {
		sessions.Go(func() { made[i] = ask[int](t, pool, "SELECT pawl.make_partitions('2044-01-01', '2044-03-01')") })
	}
	sessions.Wait()
	sum := 0
	for _, n := range made {
		sum += n
	}
	if sum != 10+4 { // the weeks since Monday, 28 December, and January to April
		t.Errorf("made %v", made)
	}
}

// Attaching a partition does not block readers and writers of events, nor do they block it.
func TestPartitionCreationDoesNotBlockEvents(t *testing.T) {
	t.Parallel()
	pool := contract(t)
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

// A session that holds rows does not wait for a partition created by another transaction that may
// want these rows: it gets an error to retry.
func TestTransitionsDoNotWaitForPartition(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	started(t, pool, func(c *engine.Config) { c.Retention.Off = true }) // which would create them again
	exec(t, pool, `INSERT INTO pawl.horizon (workflow, replay, history) VALUES ('w', '1 day', true)`)
	finished(t, pool, "s", 3, "-1 hour")
	for _, parent := range []string{"outbox", "command_history"} {
		for _, p := range partitions(t, pool, parent) {
			exec(t, pool, "DROP TABLE pawl."+strings.Fields(p)[0])
		}
	}
	for parent, sql := range map[string]string{
		"outbox": `SELECT pawl.transition('new', 'k', c.attempt, 0, 'placed', '{}', '{}', business_key => 'b')
			FROM pawl.claim('new', 'k', sha256('x'), 'order', 'place', pawl.instance_id('order', 'b')) AS c`,
		"command_history": "SELECT pawl.purge()",
	} {
		first, second := begin(t, pool), begin(t, pool)
		exec(t, first, "SELECT pawl.make_partition($1, now())", parent)
		_, err := second.Exec(t.Context(), sql)
		e := raised(t, err, "55P03")
		assert.Truef(t, strings.Contains(e.Message, parent) && e.Hint != "", "%s: %s, %s", parent, e.Message, e.Hint)
		require.NoError(t, second.Rollback(t.Context()))
		commit(t, first)
		exec(t, pool, sql)
	}
}

func TestPartitionsHaveOwnPrimaryKey(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	exec(t, pool, event, 1, time.Now())
	refused(t, pool, "23505", event, 1, time.Now())
	exec(t, pool, "SELECT pawl.make_partition('outbox', '2044-01-01')")
	exec(t, pool, event, 1, "2044-01-01") // another week: only a bug could write this
	refused(t, pool, "23505", event, 1, "2044-01-01")
}

func TestInsertFailsWithoutPartition(t *testing.T) {
	t.Parallel()
	pool := contract(t)
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

// The remains of an interrupted removal are reused.
func TestDetachedPartitionIsReattached(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	exec(t, pool, "SELECT pawl.make_partition('outbox', '2044-01-01')")
	exec(t, pool, event, 1, "2044-01-01")
	exec(t, pool, "ALTER TABLE pawl.outbox DETACH PARTITION pawl.outbox_2043w53 CONCURRENTLY")
	assert.True(t, ask[bool](t, pool, "SELECT pawl.make_partition('outbox', '2044-01-01')"), "it is not attached")
	assert.Equal(t, 1, ask[int](t, pool, "SELECT count(*) FROM pawl.outbox"), "events")
}

// A transaction that commits while the partition of its events is being detached must not lose them.
func TestCommitFailsDuringRemoval(t *testing.T) {
	t.Parallel()
	pool := contract(t)
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
	pool := contract(t)
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
	assert.NoError(t, as("SELECT pawl.detach_partition('outbox_2020w01'), pawl.drop_partition('outbox_2020w01')"),
		"one whose time is over")
	assert.True(t, ask[bool](t, pool, "SELECT pawl.drop_partition('outbox_2043w53')"), "the owner does not drop it")
}

// An unfinished removal by the owner, for example before the tables got another owner.
func TestDetachPartition_FinishesPending(t *testing.T) {
	t.Parallel()
	pool := contract(t)
	exec(t, pool, "SELECT pawl.make_partition('outbox', '2020-01-01')")
	reader := begin(t, pool)
	exec(t, reader, "SELECT FROM pawl.outbox")
	refused(t, pool, "55P03", "SELECT pawl.detach_partition('outbox_2020w01')")
	detached := background(t, pool, func(conn *pgxpool.Conn) (struct{}, error) {
		_, err := conn.Exec(t.Context(), "ALTER TABLE pawl.outbox DETACH PARTITION pawl.outbox_2020w01 CONCURRENTLY")
		return struct{}{}, err
	})
	pid := pgtest.WaitBlocked(t, pool, "DETACH PARTITION pawl.outbox_2020w01")
	exec(t, pool, "SELECT pg_cancel_backend($1)", pid)
	raised(t, (<-detached).err, "57014")
	refused(t, pool, "55P03", "SELECT pawl.detach_partition('outbox_2020w01')")
	require.NoError(t, reader.Rollback(t.Context()))
	for _, want := range []bool{true, false} {
		assert.Equal(t, want, ask[bool](t, pool, "SELECT pawl.detach_partition('outbox_2020w01')"), "detached")
	}
}
