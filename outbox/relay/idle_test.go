package relay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
