package relay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
)

// Events that retention removed before their delivery are reported.
func TestRemovedEventsAreReported(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]string{"the next": "position > 3", "all that there are": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			pool := poolOf(t, url, nil)
			publish(t, pool, tenant, "abcdef")
			publish(t, pool, "other", "abc")
			exec(t, pool, "DELETE FROM pawl.outbox WHERE tenant = 'acme' AND NOT ("+kept+")")
			exec(t, pool, "INSERT INTO pawl.outbox_sink (name) VALUES ('main')") // so the sink is not new
			to := &receiver{}
			n := startNode(t, url, quick("main", to))
			table := relay.NewTable(pool, same)
			next := "4"
			if kept == "false" {
				next = "7"
			}
			eventually(t, "the status says so", func() bool {
				list, _, err := table.Cursors(t.Context(), inspect.CursorFilter{Sink: "main"})
				return err == nil && len(list) == 2 && list[0].Position == 0 && list[1].Position == 3 && list[1].Failure == "" &&
					strings.Contains(list[0].Failure, "after position 0") && strings.Contains(list[0].Failure, "next stored position is "+next)
			})
			if info, err := table.Sinks(t.Context(), ""); err != nil || info[0].Stuck != 1 || info[0].Behind != 1 {
				t.Errorf("%+v, %v", info, err)
			}
			assert.Equal(t, 3, len(to.got()), "events were delivered")
			forward := int64(3)
			if kept == "false" {
				forward = 6
			}
			require.NoError(t, table.Move(t.Context(), "main", tenant, forward, "ann", "they are gone"))
			n.Wake()
			head := publish(t, pool, tenant, "g", n)
			cursorReaches(t, pool, "main", tenant, head)
			list, _, err := table.Cursors(t.Context(), inspect.CursorFilter{Sink: "main"})
			assert.Truef(t, err == nil && list[0].Failure == "", "%+v, %v", list, err)
			assert.Lenf(t, to.ids('g'), 1, "the newest was not delivered: %v", to.ids(0))
		})
	}
}

// A sink that is new after retention removed events starts with the oldest stored one and logs a
// warning.
func TestNewSinkStartsAtOldestEvent(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	publish(t, pool, tenant, "abcdef")
	publish(t, pool, "empty", "abc")
	publish(t, pool, "whole", "abc")
	publish(t, pool, "not mine", "abc")
	exec(t, pool, "DELETE FROM pawl.outbox WHERE tenant = 'acme' AND position <= 3 OR tenant IN ('empty', 'not mine')")
	to := &receiver{}
	n := startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Tenants = []string{tenant, "empty", "whole"} }))
	for name, head := range map[string]int64{tenant: 6, "whole": 3, "empty": 3} {
		cursorReaches(t, pool, "main", name, head)
	}
	cursorReaches(t, pool, "main", "empty", publish(t, pool, "empty", "d", n))
	var got []string
	for _, e := range to.got() {
		got = append(got, e.Tenant+" "+e.ID())
	}
	slices.Sort(got)
	mustEqual(t, "delivered", got, []string{"acme 4-0", "acme 5-0", "acme 5-1", "acme 6-0", "empty 4-0", "whole 1-0", "whole 2-0",
		"whole 3-0"})
	assert.Equal(t, 1, n.log.Count("new sink starts with the oldest stored events"), "the log says so times")
	assert.Equal(t, int64(0), number(t, pool, "SELECT count(*) FROM pawl.outbox_cursor WHERE failure IS NOT NULL OR tenant = 'not mine'"),
		"cursors are stuck, or not this sink's")
}

func TestDeadLetterSurvivesRemovedEvent(t *testing.T) {
	t.Parallel()
	for name, exhausted := range map[string]relay.Exhausted{"park": relay.Park, "hold": relay.HoldInstance} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			to := refuses("1-0", "2-0")
			n := startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Exhausted = exhausted }))
			table := relay.NewTable(n.pool, same)
			head := publish(t, n.pool, tenant, "aab", n)
			cursorReaches(t, n.pool, "main", tenant, head)
			exec(t, n.pool, "DELETE FROM pawl.outbox WHERE position = 1")
			to.mends()
			_, err := table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "")
			require.NoError(t, err)
			n.Wake()
			eventually(t, "it waits again", func() bool {
				list, _, err := table.DeadLetters(t.Context(), inspect.DeadFilter{Sink: "main"}, inspect.DeadPage{})
				return err == nil && len(list) == 1 && list[0].Position == 1 && strings.Contains(list[0].Failure, "no longer in the outbox")
			})
			want := []string{"2-0"}
			if exhausted == relay.HoldInstance {
				mustEqual(t, "delivered", to.ids('a'), nil)
				_, err := table.Skip(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "gone")
				require.NoError(t, err)
				n.Wake()
			}
			eventually(t, "the other one arrives", func() bool { return slices.Equal(to.ids('a'), want) })
		})
	}
}

// A transaction that stays open while thousands commit gets its position when it commits: a sink
// receives its events, in order.
func TestLateCommitKeepsOrder(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	to := &receiver{}
	n := startNode(t, url, quick("main", to))
	publish(t, pool, tenant, "a", n)

	late, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = late.Rollback(context.Background()) }() // no-op after commit
	for i := range 3 {
		provisional(t, late, 'z', int64(i+1))
	}
	var head int64
	for range 30 {
		head = publish(t, pool, tenant, strings.Repeat("abcde", 20), n)
	}
	cursorReaches(t, pool, "main", tenant, head)
	assert.Empty(t, to.ids('z'), "before its commit are delivered")
	require.NoError(t, late.Commit(t.Context()))
	head = publish(t, pool, tenant, strings.Repeat("abcde", 20), n)
	cursorReaches(t, pool, "main", tenant, head)
	got := to.got()
	assert.Truef(t, int64(len(got)) >= head, "%d events of %d positions", len(got), head)
	assert.Equal(t, 3, len(to.ids('z')), "the late events arrived")
	to.inOrder(t)
}

// provisional writes a transition as a transaction of a caller does, with a negative position that
// is replaced at commit.
func provisional(t testing.TB, tx pgx.Tx, name byte, version int64) {
	t.Helper()
	var position int64
	require.NoError(t, tx.QueryRow(t.Context(), "SELECT nextval('pawl.provisional')").Scan(&position))
	for _, sql := range []string{
		`INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, from_state, to_state, actor, payload, data,
			scope, key, at, hash) SELECT $1, $2, $4::bigint, $3, 'order', 'place', CASE WHEN $4::bigint > 1 THEN 's' END, 's', 'ann', '{}', '{}',
				's', 'k', now(), sha256('x')`,
		`INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
			VALUES ($1, $3, 'order.placed', 0, 'order', $2, $4, 'place', 's', now())`,
	} {
		_, err := tx.Exec(t.Context(), sql, tenant, instanceOf(name), position, version)
		require.NoError(t, err)
	}
}

// Tenants whose events were removed do not delay others, however many there are.
func TestUnreadableTenantsDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	const gone = 70
	for i := range gone {
		publish(t, pool, fmt.Sprintf("gone-%02d", i), "abc")
	}
	exec(t, pool, "DELETE FROM pawl.outbox WHERE position < 3")
	exec(t, pool, "INSERT INTO pawl.outbox_sink (name) VALUES ('main')") // so the sink is not new
	to := &receiver{}
	n := startNode(t, url, quick("main", to))
	eventually(t, "all of them are stuck", func() bool {
		return number(t, pool, "SELECT count(*) FROM pawl.outbox_cursor WHERE failure <> ''") == gone
	})
	head := publish(t, pool, tenant, "abc", n)
	cursorReaches(t, pool, "main", tenant, head)
	assert.Equal(t, int64(gone), number(t, pool, "SELECT count(*) FROM pawl.outbox_cursor WHERE failure <> ''"), "stuck")
}

// A failover may lose the end of a log that a sink has already received. Later events at these
// positions are not delivered, which the status reports.
func TestCursorPastEndOfLogIsReported(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{}
	n := startNode(t, url, quick("main", to))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, "abc", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	status := func() (stuck int64, failure string) {
		sinks, err := table.Sinks(t.Context(), "")
		require.NoError(t, err)
		cursors, _, err := table.Cursors(t.Context(), inspect.CursorFilter{Sink: "main"})
		require.NoError(t, err)
		return sinks[0].Stuck, cursors[0].Failure
	}
	stuck, failure := status()
	assert.Truef(t, stuck == 0 && failure == "", "at the end: %d are stuck, %q", stuck, failure)
	exec(t, n.pool, "DELETE FROM pawl.outbox WHERE position > 1; UPDATE pawl.log SET head = 1")
	if stuck, failure := status(); stuck != 1 || !strings.Contains(failure, "past the end of the log") {
		t.Errorf("past the end: %d are stuck, %q", stuck, failure)
	}
	require.NoError(t, table.Move(t.Context(), "main", tenant, 1, "ann", "failover"))
	stuck, failure = status()
	assert.Truef(t, stuck == 0 && failure == "", "moved back: %d are stuck, %q", stuck, failure)
	n.Wake()
	head = publish(t, n.pool, tenant, "d", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	eventually(t, "the new event is delivered", func() bool { return len(to.ids('d')) == 1 })
}
