package relay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// These tests count statements of an idle node, so they must let time pass.

func TestNodeWithoutSinksRunsNoQueries(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t))
	n.Wake()
	n.committed(tenant, 1)
	await.Pass("nothing happens", 1500*time.Millisecond)
	assert.Equal(t, 0, n.asked.Count(""), "queries")
}

// While its receiver fails, a sink loads no further tenants, and commits of new ones cause no extra
// polls. The start and the end of the failure are logged once.
func TestFailingSinkDoesNotPollNewTenants(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{fail: func(*transitions.Event, int) *sink.Failure { return sink.Fail(sink.Unavailable, nil, "down") }}
	n := startNode(t, url, quick("main", to))
	publish(t, n.pool, tenant, "a", n)
	table := relay.NewTable(n.pool, same)
	eventually(t, "it is found down", func() bool {
		list, err := table.Sinks(t.Context(), "")
		return err == nil && len(list) == 1 && list[0].Failures > 0
	})
	before, begun := n.Stats().Polls, time.Now()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := range 500 {
		n.NoteHead(fmt.Sprint("new-", i), 1)
		<-tick.C
	}
	polls, took := n.Stats().Polls-before, time.Since(begun)
	assert.Truef(t, polls <= 10+2*int64(took/time.Second), "it polled %d times in %s", polls, took)
	to.set(func(r *receiver) { r.fail = nil })
	cursorReaches(t, n.pool, "main", tenant, 1)
	if away, back := n.log.Count("the receiver of a sink fails"), n.log.Count("accepts events again"); away != 1 || back != 1 {
		t.Errorf("the log tells %d times that it is away, %d times that it is back", away, back)
	}
}

// An idle node eventually runs one query per second for all its sinks and follows no log.
func TestIdleSinksCostOneQueryPerPoll(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), quick("one", &receiver{}), quick("two", &receiver{}), quick("three", &receiver{}))
	head := publish(t, n.pool, tenant, "abc", n)
	for _, s := range []string{"one", "two", "three"} {
		cursorReaches(t, n.pool, s, tenant, head)
	}
	deadline := time.Now().Add(patience)
	for {
		begun, before, polls := time.Now(), n.asked.Count(""), n.Stats().Polls
		await.Pass("nothing happens", 3500*time.Millisecond)
		got, polled, took := n.asked.Count("")-before, n.Stats().Polls-polls, time.Since(begun)
		if got <= int(took/time.Second)+1 && polled > 0 {
			return
		}
		if time.Now().After(deadline) { // logs should no longer be followed
			t.Fatalf("%d queries and %d polls in %s", got, polled, took)
		}
	}
}

// An idle node delivers events after a notification, without a poll.
func TestIdleSinkDeliversAfterNotification(t *testing.T) {
	t.Parallel()
	to := &receiver{}
	n := newNode(t, pgtest.URL(t), func(c *relay.Config) { c.Every, c.Lease = time.Hour, 3*time.Hour }, quick("main", to))
	n.start(t)
	cursorReaches(t, n.pool, "main", tenant, publish(t, n.pool, tenant, "abc", n))
	await.Pass("the log is followed no longer", 7*time.Second)
	cursorReaches(t, n.pool, "main", tenant, publish(t, n.pool, tenant, "abc", n))
}

// A claim of a locked sink is retried at the next poll.
func TestLockedSinkIsNotPolledInALoop(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	startNode(t, url, quick("main", &receiver{})).stop()
	pool := poolOf(t, url, nil)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM pawl.outbox_sink FOR UPDATE")
	require.NoError(t, err)
	n := startNode(t, url, quick("main", &receiver{}))
	eventually(t, "it polls", func() bool { return n.Stats().Polls > 0 })
	before, begun := n.Stats().Polls, time.Now()
	await.Pass("the sink is locked", time.Second)
	if polls, took := n.Stats().Polls-before, time.Since(begun); polls > 2+2*int64(took/time.Second) {
		t.Errorf("it polled %d times in %s", polls, took)
	}
	require.NoError(t, tx.Rollback(t.Context()))
	cursorReaches(t, pool, "main", tenant, publish(t, pool, tenant, "abc", n))
}
