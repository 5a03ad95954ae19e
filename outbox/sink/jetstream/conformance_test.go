package jetstream_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/outbox/sink/sinktest"
)

func open(t *testing.T, c jetstream.Config) *jetstream.Sink {
	t.Helper()
	s, err := jetstream.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// client returns a separate connection.
func client(t *testing.T, url string) upstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := upstream.New(conn)
	require.NoError(t, err)
	return js
}

// stored returns all messages of a stream, or none without a stream.
func stored(t *testing.T, url string) []*upstream.RawStreamMsg {
	t.Helper()
	stream, err := client(t, url).Stream(t.Context(), "PAWL")
	if err == upstream.ErrStreamNotFound {
		return nil
	}
	require.NoError(t, err)
	var list []*upstream.RawStreamMsg
	for n := max(1, stream.CachedInfo().State.FirstSeq); n <= stream.CachedInfo().State.LastSeq; n++ {
		m, err := stream.GetMsg(t.Context(), n)
		require.NoError(t, err)
		list = append(list, m)
	}
	return list
}

func received(t *testing.T, url string) []sinktest.Message {
	t.Helper()
	var list []sinktest.Message
	for _, m := range stored(t, url) {
		list = append(list, sinktest.Message{ID: m.Header.Get("Nats-Msg-Id"), Body: m.Data})
	}
	return list
}

func TestJetStreamConforms(t *testing.T) {
	const limit = 64 << 10
	sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
		server := natstest.Start(t)
		proxy := natstest.NewProxy(t, server.Addr())
		// The limit is the stream's, so that the server refuses a message between others.
		_, err := client(t, server.URL()).CreateStream(t.Context(), upstream.StreamConfig{Name: "PAWL", Subjects: []string{"pawl.>"},
			MaxMsgSize: limit})
		require.NoError(t, err)
		return sinktest.Fixture{
			Sink:     open(t, jetstream.Config{URL: proxy.URL(), InFlight: 7}),
			Received: func(t *testing.T) []sinktest.Message { return received(t, server.URL()) },
			Dedupes:  true, Limit: limit,
			Down: func(*testing.T) { server.Down() },
			Up: func(t *testing.T) {
				require.NoError(t, server.Up())
			},
			Stall: func(*testing.T) func() { proxy.Stall(); return proxy.Resume },
		}
	})
}
