package faults

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
)

// The stream has every event once, in each instance's order, although more were
// published: what a dead node had published and not noted is published again by
// the next, and the stream drops it by its id.
func TestKilledRelay_JetStream(t *testing.T) {
	pgtest.Long(t)
	t.Parallel()
	server := natstest.Start(t)
	conn, err := nats.Connect(server.URL())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	var published atomic.Int64 // also those that the stream drops
	watching, err := conn.Subscribe("pawl.>", func(*nats.Msg) { published.Add(1) })
	require.NoError(t, err)
	require.NoError(t, watching.SetPendingLimits(-1, -1))
	begun := time.Now()
	k := newKillings(t, "nats", func() int { return int(published.Load()) }, nodeNATS+"="+server.URL())
	var js jetstream.JetStream
	js, err = jetstream.New(conn)
	require.NoError(t, err)
	again := func() int { // those that were published again; what was published before is counted
		stream, err := js.Stream(bounded(t), "PAWL")
		if err == nil {
			err = conn.FlushTimeout(patience)
		}
		require.NoError(t, err)
		return int(published.Load()) - int(stream.CachedInfo().State.Msgs)
	}
	kills := k.run(func() bool { return again() > 0 })
	took := time.Since(begun)

	got := stored(t, conn)
	k.wantAll(got)
	t.Logf("%d kills, %d of them in the middle, %d events in %.0fs; %d were published again and dropped",
		kills, k.busy, len(got), took.Seconds(), again())
	assert.True(t, again() > 0, "nothing was published again: the test proves little")
}

// stored is all that the stream has, in its order.
func stored(t *testing.T, conn *nats.Conn) []delivered {
	t.Helper()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(bounded(t), "PAWL")
	require.NoError(t, err)
	consumer, err := stream.CreateConsumer(bounded(t), jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy})
	require.NoError(t, err)
	var got []delivered
	for total := int(stream.CachedInfo().State.Msgs); len(got) < total; {
		batch, err := consumer.Fetch(min(500, total-len(got)), jetstream.FetchMaxWait(patience))
		require.NoError(t, err)
		for m := range batch.Messages() {
			version, err := strconv.ParseInt(m.Headers().Get("ce-version"), 10, 64)
			require.NoError(t, err)
			got = append(got, delivered{m.Headers().Get(jetstream.MsgIDHeader), uuid.MustParse(m.Headers().Get("ce-instance")), version})
		}
		require.NoError(t, batch.Error())
	}
	return got
}
