package relay_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/workflow"
)

// An event whose acknowledgement is lost is tried again while the stream still knows
// its id, however long the waits are to be: it is stored once.
func TestBackoffStaysInDuplicateWindow(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	proxy := natstest.NewProxy(t, server.Addr())
	to, err := jetstream.New(jetstream.Config{URL: proxy.URL(), Duplicates: 20 * time.Second, Timeout: 300 * time.Millisecond})
	require.NoError(t, err)
	n := startNode(t, pgtest.URL(t), quick("main", to, func(s *relay.Sink) {
		s.Retry = workflow.Retry{Attempts: 3, First: time.Hour, Max: time.Hour}
	}))
	eventually(t, "the stream can be reached", func() bool { return to.Check(context.Background()) == nil })
	stored := storedIn(t, server.URL())
	cursorReaches(t, n.pool, "main", tenant, publish(t, n.pool, tenant, "a", n))
	proxy.Stall()
	head := publish(t, n.pool, tenant, "b", n)
	eventually(t, "it is stored", func() bool { return stored() == 2 })
	eventually(t, "its acknowledgement is missed", func() bool {
		list, err := relay.NewTable(n.pool, same).Sinks(t.Context(), "")
		return err == nil && list[0].Failures > 0
	})
	proxy.Resume()
	cursorReaches(t, n.pool, "main", tenant, head)
	assert.Equal(t, uint64(2), stored(), "the stream has messages of 2 events")
}

// storedIn counts what is in the stream.
func storedIn(t *testing.T, url string) func() uint64 {
	t.Helper()
	conn, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := upstream.New(conn)
	require.NoError(t, err)
	return func() uint64 {
		stream, err := js.Stream(t.Context(), "PAWL")
		require.NoError(t, err)
		return stream.CachedInfo().State.Msgs
	}
}
