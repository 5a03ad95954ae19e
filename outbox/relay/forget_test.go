package relay_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// An event that an operator skips during an outage is not tried after it.
func TestSkippedEventIsNotDeliveredFromMemory(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := refuses("1-0", "2-0")
	n := startNode(t, url, quick("main", to))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, "aab", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	to.set(func(r *receiver) {
		r.tries = map[string]int{}
		r.fail = func(*transitions.Event, int) *sink.Failure { return sink.Fail(sink.Unavailable, nil, "down") }
	})
	count, err := table.Redrive(t.Context(), inspect.DeadFilter{Sink: "main"}, "ann", "")
	require.Truef(t, count == 2 && err == nil, "%v %v", count, err)
	n.Wake()
	tried := func() (count int) {
		to.set(func(r *receiver) { count = r.tries["acme:1-0"] })
		return count
	}
	eventually(t, "it is tried", func() bool { return tried() > 0 })
	count, err = table.Skip(t.Context(), inspect.DeadFilter{Sink: "main", Status: inspect.DeadQueued, Tenant: tenant, Position: 1},
		"ann", "gone")
	require.Truef(t, count == 1 && err == nil, "%v %v", count, err)
	n.Wake()
	eventually(t, "the next one is tried instead", func() (is bool) {
		to.set(func(r *receiver) { is = r.tries["acme:2-0"] > 0 })
		return is
	})
	to.mends()
	eventually(t, "the next one arrives", func() bool { return slices.Contains(to.ids('a'), "2-0") })
	mustEqual(t, "delivered", to.ids('a'), []string{"2-0"})
}

// Forget deletes a sink's rows only, and fails while a node delivers to it.
func TestForgottenSinkLeavesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	n := startNode(t, url, quick("main", refuses("1-0")), quick("other", refuses("1-0")))
	table := relay.NewTable(pool, same)
	head := publish(t, pool, tenant, "ab", n)
	cursorReaches(t, pool, "main", tenant, head)
	cursorReaches(t, pool, "other", tenant, head)
	if err := table.Forget(t.Context(), "main"); workflow.CodeOf(err) != workflow.InvalidRequest || !strings.Contains(err.Error(), n.name) {
		t.Errorf("while it is delivered to: %v", err)
	}
	n.stop()
	require.NoError(t, table.Forget(t.Context(), "main"))
	err := table.Forget(t.Context(), "main")
	assert.Equalf(t, workflow.NotFound, workflow.CodeOf(err), "a second time: %v", err)
	for _, of := range []string{"outbox_sink WHERE name", "outbox_cursor WHERE sink", "outbox_dead WHERE sink"} {
		for name, want := range map[string]int64{"main": 0, "other": 1} {
			assert.Equalf(t, want, number(t, pool, "SELECT count(*) FROM pawl."+of+" = $1", name), "%s rows of %s", of, name)
		}
	}
}
