package relay_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// A receiver that fails every event more often than there are attempts receives everything in order
// when it is back.
func TestTotalFailureLosesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	tries := 0
	to := &receiver{fail: func(*transitions.Event, int) *sink.Failure {
		tries++
		return sink.Fail(sink.Temporary, nil, "500 Internal Server Error")
	}}
	n := startNode(t, url, quick("main", to))
	publish(t, n.pool, tenant, strings.Repeat("abcdefghij", 10), n)
	eventually(t, "events are tried again and again", func() (many bool) {
		to.set(func(*receiver) { many = tries > 20*10 })
		return many
	})
	head := publish(t, n.pool, tenant, "abcdefghij", n)
	table := relay.NewTable(n.pool, same)
	eventually(t, "the sink's failures are known", func() bool {
		list, err := table.Sinks(t.Context(), "")
		return err == nil && list[0].Failures > 1
	})
	assert.Equal(t, int64(0), number(t, n.pool, "SELECT count(*) FROM pawl.outbox_dead WHERE status = 'waiting'"),
		"dead letters while nothing is accepted")
	to.mends()
	cursorReaches(t, n.pool, "main", tenant, head)
	to.wants(t, events(head))
	assert.Equal(t, 0, to.inOrder(t), "delivered twice")
	eventually(t, "nothing is deferred", func() bool { return number(t, n.pool, "SELECT count(*) FROM pawl.outbox_dead") == 0 })
}
