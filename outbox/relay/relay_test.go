package relay_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

func TestEveryEventIsDeliveredOnceInOrder(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{}
	n := startNode(t, url, quick("main", to))
	head := publish(t, n.pool, tenant, strings.Repeat("abcabd", 100), n)
	publish(t, n.pool, "other", "aab", n)
	to.wants(t, events(head)+events(3))
	assert.Equal(t, 0, to.inOrder(t), "delivered twice")
	cursorReaches(t, n.pool, "main", tenant, head)
	cursorReaches(t, n.pool, "main", "other", 3)
	head = publish(t, n.pool, tenant, "ab", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	n.stop()
	assert.Equal(t, 1, to.closed, "the sink was closed times")
}

// Delivery works behind a pooler without prepared statements.
func TestPoolWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	to := refuses("1-0")
	n := newNode(t, url, func(c *relay.Config) { c.Pool = pool }, quick("main", to, func(s *relay.Sink) {
		s.Exhausted, s.FromNow, s.Tenants = relay.HoldInstance, true, []string{tenant}
	}))
	n.start(t)
	head := publish(t, pool, tenant, "aaab", n)
	cursorReaches(t, pool, "main", tenant, head)
	to.mends()
	table := relay.NewTable(pool, same)
	count, err := table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main", Instance: instanceOf('a')},
		"ann", "")
	require.Truef(t, err == nil && count == 1, "%v %v", count, err)
	n.Wake()
	to.wants(t, events(head))
	to.inOrder(t)
	require.NoError(t, table.Move(t.Context(), "main", tenant, 0, "ann", "again"))
	require.NoError(t, table.Pause(t.Context(), "main", "ann", ""))
	require.NoError(t, table.Resume(t.Context(), "main"))
	n.Wake()
	eventually(t, "everything arrives again", func() bool { return len(to.got()) >= 2*events(head) })
	list, _, err := table.Cursors(t.Context(), inspect.CursorFilter{Sink: "main"})
	assert.Truef(t, err == nil && len(list) == 1, "%+v, %v", list, err)
	if list, err := table.Sinks(t.Context(), ""); err != nil || len(list) != 1 || len(list[0].Tenants) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, _, err := table.DeadLetters(t.Context(), inspect.DeadFilter{Sink: "main", Instance: instanceOf('a')},
		inspect.DeadPage{}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestFilterSkipsOtherEvents(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one, some, declared, both := &receiver{}, &receiver{}, &receiver{}, &receiver{}
	ofB := func(s *relay.Sink) { s.Filter = transitions.EventFilter{Instance: instanceOf('b')} }
	n := startNode(t, url,
		quick("one", one, func(s *relay.Sink) { s.Tenants = []string{"other"} }),
		quick("some", some, func(s *relay.Sink) {
			s.Wants = func(e *transitions.Event) bool { return e.Instance == instanceOf('b') && e.Ordinal == 0 }
		}),
		quick("declared", declared, ofB),
		quick("both", both, ofB, func(s *relay.Sink) { s.Wants = func(e *transitions.Event) bool { return e.Ordinal == 0 } }))
	head := publish(t, n.pool, tenant, strings.Repeat("ab", 500), n)
	publish(t, n.pool, "other", "ccc", n)
	cursorReaches(t, n.pool, "some", tenant, head)
	cursorReaches(t, n.pool, "one", "other", 3)
	cursorReaches(t, n.pool, "declared", tenant, head)
	cursorReaches(t, n.pool, "both", tenant, head)
	for _, e := range append(declared.got(), both.got()...) {
		require.Equalf(t, instanceOf('b'), e.Instance, "an event of another instance passed: %+v", e)
	}
	if all, firsts := len(declared.got()), len(both.got()); all <= 500 || firsts != 500 {
		t.Errorf("%d events passed the declared filter, %d both", all, firsts)
	}
	assert.Equal(t, 500, len(some.got()), "events passed the filter, not 500")
	got := one.got()
	assert.Truef(t, len(got) == 3 && got[0].Tenant == "other", "the sink of one tenant has %d events", len(got))
	assert.Equal(t, int64(1), number(t, n.pool, "SELECT count(*) FROM pawl.outbox_cursor WHERE sink = 'one'"), "it has cursors")
}

func TestPanickingFilterStopsTenant(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{}
	n := startNode(t, url, quick("main", to, func(s *relay.Sink) {
		s.Wants = func(e *transitions.Event) bool {
			if e.Tenant == "bad" {
				panic("oops\x00\xff") // not a valid text value
			}
			return true
		}
	}))
	publish(t, n.pool, "bad", "a", n)
	head := publish(t, n.pool, tenant, "abc", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	eventually(t, "the status says so", func() bool {
		list, _, err := relay.NewTable(n.pool, same).Cursors(t.Context(), inspect.CursorFilter{Sink: "main"})
		return err == nil && len(list) == 2 && strings.Contains(list[1].Failure, "oops") && list[1].Position == 0 && list[0].Failure == ""
	})
}

func TestNewSinkFromNow(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	head := publish(t, pool, tenant, "abc")
	to := &receiver{}
	now := quick("now", to, func(s *relay.Sink) { s.FromNow = true })
	n := startNode(t, url, now)
	publish(t, pool, tenant, "d", n)
	publish(t, pool, "new", "e", n)
	to.wants(t, 2)
	cursorReaches(t, pool, "now", tenant, head+1)
	n.stop()
	publish(t, pool, tenant, "f")
	startNode(t, url, now) // the sink is no longer new
	to.wants(t, 3)
	cursorReaches(t, pool, "now", tenant, head+2)
	if got := to.ids(0); len(got) != 4 { // position 5 has two events
		t.Errorf("got %v", got)
	}
}

// A sink that hangs does not delay others.
func TestHangingSinkDoesNotSlowOthers(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	hangs := &receiver{enter: func(ctx context.Context, _ []transitions.Logged) { <-ctx.Done() }}
	fails := &receiver{fail: func(*transitions.Event, int) *sink.Failure { return sink.Fail(sink.Unavailable, nil, "down") }}
	panics := &receiver{enter: func(context.Context, []transitions.Logged) { panic("oops") }}
	lives := &receiver{}
	small := func(s *relay.Sink) { s.Window = 100 }
	n := startNode(t, url, quick("hangs", hangs, small), quick("fails", fails, small), quick("panics", panics, small),
		quick("lives", lives, small))
	var head int64
	for range 20 {
		head = publish(t, n.pool, tenant, strings.Repeat("abcdefghij", 10), n)
	}
	cursorReaches(t, n.pool, "lives", tenant, head)
	lives.inOrder(t)
	for _, dead := range []string{"hangs", "fails", "panics"} {
		assert.Equalf(t, int64(0), cursor(t, n.pool, dead, tenant), "the cursor of the sink that %s is at", dead)
	}
	assert.Equal(t, int64(0), number(t, n.pool, "SELECT count(*) FROM pawl.outbox_dead"),
		"events were deferred because their receivers were down")
	eventually(t, "the failures are known", func() bool {
		list, err := relay.NewTable(n.pool, same).Sinks(t.Context(), "")
		require.Truef(t, err == nil && len(list) == 4, "%v %v", list, err)
		return list[0].Failures > 1 && list[0].Failure == "down" && list[0].Lag == head && list[3].Failures > 1 &&
			strings.Contains(list[3].Failure, "oops") && list[2].Failures == 0 && list[2].Lag == 0 && list[2].Delivered == int64(events(head))
	})
	fails.set(func(r *receiver) { r.fail = nil })
	cursorReaches(t, n.pool, "fails", tenant, head)
	assert.Equal(t, 0, fails.inOrder(t), "delivered twice")
	eventually(t, "it has recovered", func() bool {
		list, err := relay.NewTable(n.pool, same).Sinks(t.Context(), "")
		return err == nil && list[0].Failures == 0
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // do not wait for the hanging call
	n.Stop(ctx)
}

// An event that crashes its receiver is parked, and the others arrive.
func TestPoisonEventIsParked(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{fail: func(e *transitions.Event, _ int) *sink.Failure {
		if e.ID() == "3-0" {
			return sink.Fail(sink.Unavailable, nil, "it fell over")
		}
		return nil
	}}
	n := startNode(t, url, quick("main", to))
	head := publish(t, n.pool, tenant, strings.Repeat("abcdefgh", 200), n)
	eventually(t, "it is a dead letter", func() bool {
		// The failure is only attributed to the event once others arrive.
		head = publish(t, n.pool, tenant, "bdefgh", n)
		list, _, err := relay.NewTable(n.pool, same).DeadLetters(t.Context(), inspect.DeadFilter{Sink: "main"}, inspect.DeadPage{})
		return err == nil && len(list) == 1 && list[0].Position == 3 && list[0].Kind == string(sink.Unavailable) &&
			list[0].Failure == "it fell over"
	})
	cursorReaches(t, n.pool, "main", tenant, head)
	to.wants(t, events(head)-1)
}
