package relay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// refuses returns a receiver that permanently refuses the events with these ids.
func refuses(ids ...string) *receiver {
	return &receiver{fail: func(e *transitions.Event, _ int) *sink.Failure {
		if e.Tenant == tenant && slices.Contains(ids, e.ID()) {
			return sink.Fail(sink.Permanent, nil, "not this one")
		}
		return nil
	}}
}

// mends makes the receiver accept everything.
func (r *receiver) mends() { r.set(func(r *receiver) { r.fail = nil }) }

func deadLetters(t testing.TB, table *relay.Table, f inspect.DeadFilter) (ids []string) {
	t.Helper()
	list, _, err := table.DeadLetters(t.Context(), f, inspect.DeadPage{})
	require.NoError(t, err)
	for _, d := range list {
		ids = append(ids, fmt.Sprintf("%d-%d", d.Position, d.Ordinal))
	}
	return ids
}

func mustEqual(t testing.TB, what string, got, want []string) {
	t.Helper()
	assert.Truef(t, slices.Equal(got, want), "%s: got %v, want %v", what, got, want)
}

func TestParkedEventDoesNotBlockInstance(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := refuses("1-0", "3-0")
	n := startNode(t, url, quick("main", to))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, "aaab", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	mustEqual(t, "delivered", to.ids('a'), []string{"2-0"})
	list, _, err := table.DeadLetters(t.Context(), inspect.DeadFilter{Sink: "main"}, inspect.DeadPage{})
	require.Truef(t, err == nil && len(list) == 2, "%v %v", list, err)
	d := list[0]
	if d.Tenant != tenant || d.Position != 1 || d.Type != "order.0" || d.Workflow != "order" || d.Instance != instanceOf('a') ||
		d.Status != inspect.DeadWaiting || d.Kind != string(sink.Permanent) || d.Failure != "not this one" || d.Attempts != 1 ||
		d.Created.IsZero() {
		t.Errorf("the dead letter is %+v", d)
	}

	// Redriven events arrive again in order, with the same ids.
	to.mends()
	for _, want := range []int64{2, 0} { // the second redrive finds none
		if count, err := table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "mended"); err != nil || count != want {
			t.Errorf("%d were redriven, %v, not %d", count, err, want)
		}
	}
	n.Wake()
	to.wants(t, 4)
	mustEqual(t, "delivered", to.ids('a'), []string{"2-0", "1-0", "3-0"})
	eventually(t, "they are marked", func() bool {
		return len(deadLetters(t, table, inspect.DeadFilter{Sink: "main", Status: inspect.DeadRedriven})) == 2
	})
	list, _, err = table.DeadLetters(t.Context(), inspect.DeadFilter{Sink: "main", Status: inspect.DeadRedriven}, inspect.DeadPage{})
	assert.Truef(t, err == nil && list[0].By == "ann" && list[0].Reason == "mended", "%+v, %v", list, err)
}

func TestDeadLetterHoldsItsInstance(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"redriven", "skipped"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			to := refuses("2-0")
			n := startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Exhausted = relay.HoldInstance }))
			table := relay.NewTable(n.pool, same)
			head := publish(t, n.pool, tenant, "aaabaaab", n)
			cursorReaches(t, n.pool, "main", tenant, head)
			mustEqual(t, "delivered", to.ids('a'), []string{"1-0"})
			mustEqual(t, "delivered of others", to.ids('b'), []string{"4-0", "8-0"})
			mustEqual(t, "waits", deadLetters(t, table, inspect.DeadFilter{Sink: "main"}), []string{"2-0"})
			mustEqual(t, "queued", deadLetters(t, table, inspect.DeadFilter{Sink: "main", Status: inspect.DeadQueued}),
				[]string{"3-0", "5-0", "5-1", "6-0", "7-0"})

			// Another node holds the instance too.
			n.stop()
			n = startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Exhausted = relay.HoldInstance }))
			head = publish(t, n.pool, tenant, "ab", n)
			cursorReaches(t, n.pool, "main", tenant, head)
			mustEqual(t, "delivered", to.ids('a'), []string{"1-0"})

			to.mends()
			want := []string{"1-0", "3-0", "5-0", "5-1", "6-0", "7-0", "9-0"}
			act := table.Skip
			if how == "redriven" {
				act, want = table.Redrive, slices.Insert(want, 1, "2-0")
			}
			count, err := act(t.Context(), inspect.DeadFilter{Sink: "main", Tenant: tenant, Position: 2},
				"ann", "known")
			require.Truef(t, count == 1 && err == nil, "%v %v", count, err)
			n.Wake()
			eventually(t, "the instance goes on", func() bool { return len(to.ids('a')) == len(want) })
			mustEqual(t, "delivered", to.ids('a'), want)
			head = publish(t, n.pool, tenant, "a", n)
			cursorReaches(t, n.pool, "main", tenant, head)
			eventually(t, "nothing is deferred", func() bool {
				return number(t, n.pool, "SELECT count(*) FROM pawl.outbox_dead WHERE status IN ('queued', 'waiting')") == 0
			})
			to.wants(t, len(to.ids('b'))+len(want)+1)
			to.inOrder(t)
		})
	}
}

func TestBlockStopsCursorUntilDelivery(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := refuses("2-0")
	n := startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Exhausted, s.Window = relay.Block, 64 }))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, strings.Repeat("abcde", 100), n)
	otherHead := publish(t, n.pool, "other", strings.Repeat("xyz", 20), n)
	cursorReaches(t, n.pool, "main", "other", otherHead) // another tenant continues, two events at a time
	cursorReaches(t, n.pool, "main", tenant, 1)
	eventually(t, "the status tells why", func() bool {
		list, _, err := table.Cursors(t.Context(), inspect.CursorFilter{Sink: "main"})
		return err == nil && len(list) == 2 && list[0].Position == 1 && list[0].Lag == head-1 && !list[0].Oldest.IsZero() &&
			strings.Contains(list[0].Failure, "2-0") && strings.Contains(list[0].Failure, "not this one") && list[1].Failure == ""
	})
	if n := len(to.got()); n > events(otherHead)+2*64 {
		t.Errorf("%d events were delivered although one blocks", n)
	}
	to.mends()
	cursorReaches(t, n.pool, "main", tenant, head)
	assert.Equal(t, 0, to.inOrder(t), "delivered twice")
	assert.Equal(t, int64(0), number(t, n.pool, "SELECT count(*) FROM pawl.outbox_dead"), "rows are deferred")
}

// More tenants are blocked than there are readers, each with more events than the window. The
// others are not affected.
func TestBlockedTenantsDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	const blocked, each = 40, 100
	url := pgtest.URL(t)
	to := &receiver{fail: func(e *transitions.Event, _ int) *sink.Failure {
		if e.Position == 2 && e.Tenant != "healthy" {
			return sink.Fail(sink.Permanent, nil, "not this one")
		}
		return nil
	}}
	n := startNode(t, url, quick("main", to, func(s *relay.Sink) {
		s.Exhausted, s.Window = relay.Block, 64
		s.Retry.First, s.Retry.Max = 50*time.Millisecond, 200*time.Millisecond // limits the load of the attempts
	}))
	var head int64
	for i := range blocked {
		head = publish(t, n.pool, fmt.Sprint("blocked ", i), strings.Repeat("abcde", each/5), n)
	}
	eventually(t, "all of them are blocked", func() bool {
		list, err := relay.NewTable(n.pool, same).Sinks(t.Context(), "")
		return err == nil && list[0].Stuck == blocked
	})
	for range 3 { // together more than the window, a few at a time
		cursorReaches(t, n.pool, "main", "healthy", publish(t, n.pool, "healthy", strings.Repeat("xyz", 8), n))
	}
	assert.Equal(t, int64(0), number(t, n.pool, "SELECT count(*) FROM pawl.outbox_cursor WHERE tenant <> 'healthy' AND position > 1"),
		"blocked tenants have gone on")
	to.mends()
	eventually(t, "the others go on when they can", func() bool {
		return number(t, n.pool, "SELECT count(*) FROM pawl.outbox_cursor WHERE tenant <> 'healthy' AND position = $1 AND failure IS NULL",
			head) == blocked
	})
	to.inOrder(t)
	to.wants(t, blocked*events(head)+events(3*24))
}

func TestPausedSinkReceivesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to, other := &receiver{}, &receiver{}
	n := startNode(t, url, quick("main", to), quick("other", other))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, "abc", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	for _, by := range []string{"ann", "bob"} { // the second pause is a no-op
		require.NoError(t, table.Pause(t.Context(), "main", by, "maintenance"))
	}
	n.Wake()
	info := func() inspect.SinkInfo {
		list, err := table.Sinks(t.Context(), "")
		require.Truef(t, err == nil && len(list) == 2, "%v %v", list, err)
		return list[0]
	}
	eventually(t, "its lease is given back", func() bool { return info().Node == "" })
	p := info().Paused
	assert.Truef(t, p != nil && p.By == "ann" && p.Reason == "maintenance" && !p.At.IsZero(), "paused: %+v", p)
	head = publish(t, n.pool, tenant, "abc", n)
	cursorReaches(t, n.pool, "other", tenant, head)
	assert.Equal(t, 3, len(to.got()), "a paused sink events")
	for range 2 {
		require.NoError(t, table.Resume(t.Context(), "main"))
	}
	n.Wake()
	cursorReaches(t, n.pool, "main", tenant, head)
	assert.Truef(t, info().Paused == nil && info().Node == n.name, "after it was resumed: %+v", info())
}

// This holds with and without a message of the sink.
func TestGonePausesSink(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]*sink.Failure{
		"says why":                  sink.Fail(sink.Gone, nil, "410 Gone"),
		"says nothing":              {Kind: sink.Gone},
		"says what no column takes": {Kind: sink.Gone, Message: "410\x00\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			to := &receiver{fail: func(e *transitions.Event, _ int) *sink.Failure {
				if e.Position == 3 {
					return gone
				}
				return nil
			}}
			n := startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Calls = 1 }))
			table := relay.NewTable(n.pool, same)
			publish(t, n.pool, tenant, "abcde", n)
			eventually(t, "it is paused", func() bool {
				list, err := table.Sinks(t.Context(), "")
				return err == nil && list[0].Paused != nil && list[0].Paused.By == "pawl" && list[0].Paused.Reason != "" &&
					strings.HasPrefix(list[0].Paused.Reason, gone.Message[:min(3, len(gone.Message))]) && list[0].Node == ""
			})
			cursorReaches(t, n.pool, "main", tenant, 2)
			to.mends()
			require.NoError(t, table.Resume(t.Context(), "main"))
			n.Wake()
			cursorReaches(t, n.pool, "main", tenant, 5)
			to.inOrder(t)
		})
	}
}

func TestMoveRepeatsOrSkipsEvents(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := refuses("2-0", "8-0")
	n := startNode(t, url, quick("main", to))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, "abcdabcdab", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	before := len(to.got())

	for range 2 { // the second time is a no-op
		require.NoError(t, table.Move(t.Context(), "main", tenant, 6, "ann", "lost by the receiver"))
	}
	mustEqual(t, "dead letters before the position stay", deadLetters(t, table, inspect.DeadFilter{Sink: "main"}), []string{"2-0"})
	to.mends()
	n.Wake()
	eventually(t, "they are delivered again", func() bool { return len(to.got()) == before+5 })
	cursorReaches(t, n.pool, "main", tenant, head)
	list, _, err := table.Cursors(t.Context(), inspect.CursorFilter{Sink: "main"})
	assert.Truef(t, err == nil && len(list) == 1 && list[0].Moved != nil && list[0].Moved.From == head && list[0].Moved.By == "ann" &&
		list[0].Moved.Reason == "lost by the receiver",
		"%+v, %v", list, err)

	require.NoError(t, table.Pause(t.Context(), "main", "ann", ""))
	n.Wake()
	eventually(t, "it is paused", func() bool {
		list, err := table.Sinks(t.Context(), "")
		return err == nil && list[0].Node == ""
	})
	end := publish(t, n.pool, tenant, "abcd", n)
	for _, bad := range []struct {
		position int64
		reason   string
	}{{end - 1, ""}, {end + 1, "why not"}, {-1, "why not"}} {
		if err := table.Move(t.Context(), "main", tenant, bad.position, "ann", bad.reason); workflow.CodeOf(err) != workflow.InvalidRequest {
			t.Errorf("to %d: %v", bad.position, err)
		}
	}
	require.NoError(t, table.Move(t.Context(), "main", tenant, end-1, "ann", "they are tests"))
	before = len(to.got())
	require.NoError(t, table.Resume(t.Context(), "main"))
	n.Wake()
	cursorReaches(t, n.pool, "main", tenant, end)
	got := to.ids(0)[before:]
	assert.Truef(t, len(got) == 1 && got[0] == fmt.Sprintf("%d-0", end), "after it went forward it got %v", got)
}

func TestFiltersSelectDeadLetters(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{fail: func(*transitions.Event, int) *sink.Failure { return sink.Fail(sink.Permanent, nil, "no") }}
	n := startNode(t, url, quick("main", to), quick("other", to))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, "abcab", n)
	publish(t, n.pool, "globex", "ab", n)
	for _, s := range []string{"main", "other"} {
		cursorReaches(t, n.pool, s, tenant, head)
		cursorReaches(t, n.pool, s, "globex", 2)
	}
	for _, c := range []struct {
		filter inspect.DeadFilter
		want   []string // by tenant and instance
	}{
		{inspect.DeadFilter{}, []string{"1-0", "4-0", "2-0", "5-0", "5-1", "3-0", "1-0", "2-0"}},
		{inspect.DeadFilter{Tenant: "globex"}, []string{"1-0", "2-0"}},
		{inspect.DeadFilter{Tenant: "nobody"}, nil},
		{inspect.DeadFilter{Instance: instanceOf('a')}, []string{"1-0", "4-0", "1-0"}},
		{inspect.DeadFilter{Type: "order.1"}, []string{"5-1"}},
		{inspect.DeadFilter{Workflow: "order", Tenant: tenant, Position: 5}, []string{"5-0", "5-1"}},
		{inspect.DeadFilter{Workflow: "fine"}, nil},
		{inspect.DeadFilter{Status: inspect.DeadSkipped}, nil},
	} {
		c.filter.Sink = "main"
		mustEqual(t, fmt.Sprintf("%+v", c.filter), deadLetters(t, table, c.filter), c.want)
	}

	var paged []string
	var page inspect.DeadPage
	for page.Limit = 3; ; {
		list, more, err := table.DeadLetters(t.Context(), inspect.DeadFilter{Sink: "main"}, page)
		require.NoError(t, err)
		for _, d := range list {
			paged = append(paged, fmt.Sprintf("%d-%d", d.Position, d.Ordinal))
		}
		if !more {
			break
		}
		page.After = list[len(list)-1]
	}
	mustEqual(t, "page by page", paged, []string{"1-0", "4-0", "2-0", "5-0", "5-1", "3-0", "1-0", "2-0"})

	count, err := table.Skip(t.Context(), inspect.DeadFilter{Sink: "main", Instance: instanceOf('a')},
		"ann", "tests")
	assert.Truef(t, err == nil && count == 3, "%d were skipped, %v", count, err)
	mustEqual(t, "the other sink's", deadLetters(t, table, inspect.DeadFilter{Sink: "other", Instance: instanceOf('a')}),
		[]string{"1-0", "4-0", "1-0"})
	to.mends()
	count, err = table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main", Status: inspect.DeadSkipped, Tenant: "globex"},
		"ann", "by mistake")
	assert.Truef(t, err == nil && count == 1, "%d of those that were skipped were redriven, %v", count, err)
	n.Wake()
	eventually(t, "it arrives", func() bool { return slices.Equal(to.ids('a'), []string{"1-0"}) })
}

func TestRedriveWorksInBatches(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{fail: func(*transitions.Event, int) *sink.Failure { return sink.Fail(sink.Permanent, nil, "no") }}
	n := startNode(t, url, quick("main", to))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, strings.Repeat("abcdefghijklmnopqrst", 125), n)
	cursorReaches(t, n.pool, "main", tenant, head)
	to.mends()
	count, err := table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "")
	assert.Truef(t, err == nil && count == int64(events(head)), "%d of %d were redriven, %v", count, events(head), err)
	n.Wake()
	to.wants(t, events(head))
	assert.Equal(t, 0, to.inOrder(t), "delivered twice")
}

func TestErrorsOfOperations(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	n := startNode(t, url, quick("main", &receiver{}))
	table := relay.NewTable(n.pool, same)
	closed := poolOf(t, url, nil)
	closed.Close()
	gone := relay.NewTable(closed, same)
	operations := func(table *relay.Table, name, by string, f inspect.DeadFilter, limit int) map[string]error {
		ctx := t.Context()
		errs := map[string]error{}
		errs["pause"] = table.Pause(ctx, name, by, "")
		errs["resume"] = table.Resume(ctx, name)
		errs["move"] = table.Move(ctx, name, "", 0, by, "")
		_, errs["redrive"] = table.Redrive(ctx, f, by, "")
		_, errs["skip"] = table.Skip(ctx, f, by, "a reason")
		_, _, errs["cursors"] = table.Cursors(ctx, inspect.CursorFilter{Sink: name, Limit: limit})
		_, _, errs["dead letters"] = table.DeadLetters(ctx, f, inspect.DeadPage{Limit: limit})
		return errs
	}
	for name, err := range operations(table, "unknown", "ann", inspect.DeadFilter{Sink: "unknown"}, 0) {
		assert.Equalf(t, workflow.NotFound, workflow.CodeOf(err), "%s of an unknown sink: %v", name, err)
	}
	for name, err := range operations(gone, "main", "ann", inspect.DeadFilter{Sink: "main"}, 0) {
		assert.Equalf(t, workflow.Unavailable, workflow.CodeOf(err), "%s without a database: %v", name, err)
	}
	for _, f := range []inspect.DeadFilter{{Sink: "main", Status: "odd"}, {Sink: "main", Position: 1}, {Sink: "main", Tenant: "\x00"},
		{Sink: "a\x00"}} {
		for name, err := range operations(table, "main", "a\x00b", f, 1001) {
			assert.Falsef(t, name != "resume" && workflow.CodeOf(err) != workflow.InvalidRequest, "%s of %+v: %v", name, f, err)
		}
	}
	_, err := table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main", Status: inspect.DeadQueued},
		"", "")
	assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "redrive what is queued: %v", err)
	_, err = table.Skip(t.Context(), inspect.DeadFilter{Sink: "main", Status: inspect.DeadRedriven},
		"", "known")
	assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "skip what was redriven: %v", err)
}
