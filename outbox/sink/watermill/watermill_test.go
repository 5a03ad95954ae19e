package watermill_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	wmnats "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/outbox/sink/sinktest"
	"github.com/pawlhq/pawl/outbox/sink/watermill"
	"github.com/pawlhq/pawl/transitions"
)

// stored returns all messages of the topic "pawl".
func stored(t *testing.T, url string) []sinktest.Message {
	t.Helper()
	conn, err := nats.Connect(url)
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "pawl")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	require.NoError(t, err)
	var list []sinktest.Message
	for n := max(1, stream.CachedInfo().State.FirstSeq); n <= stream.CachedInfo().State.LastSeq; n++ {
		m, err := stream.GetMsg(t.Context(), n)
		require.NoError(t, err)
		list = append(list, sinktest.Message{ID: m.Header.Get("Nats-Msg-Id"), Body: m.Data})
	}
	return list
}

// Watermill's publisher for NATS JetStream creates a stream for the topic.
func TestWatermillConformsOverNATS(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
		server := natstest.Start(t)
		publisher, err := wmnats.NewPublisher(wmnats.PublisherConfig{
			URL:         server.URL(),
			NatsOptions: []nats.Option{nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.ReconnectWait(50 * time.Millisecond)},
			JetStream:   wmnats.JetStreamConfig{AutoProvision: true, TrackMsgId: true},
		}, nil)
		require.NoError(t, err)
		s, err := watermill.New(watermill.Config{Publisher: publisher, Kind: func(err error) sink.Kind {
			if errors.Is(err, nats.ErrMaxPayload) {
				return sink.Permanent
			}
			return sink.Unavailable
		}})
		require.NoError(t, err)
		return sinktest.Fixture{
			Sink:     s,
			Received: func(t *testing.T) []sinktest.Message { return stored(t, server.URL()) },
			Dedupes:  true, Limit: 1 << 20,
			Down: func(*testing.T) { server.Down() },
			Up: func(t *testing.T) {
				require.NoError(t, server.Up())
			},
		}
	})
}

// publisher adapts a function to a publisher.
type publisher func(topic string, m *message.Message) error

func (p publisher) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		if err := p(topic, m); err != nil {
			return err
		}
	}
	return nil
}

var errClose = errors.New("cannot be closed")

func (publisher) Close() error { return errClose }

func open(t *testing.T, c watermill.Config) *watermill.Sink {
	t.Helper()
	s, err := watermill.New(c)
	require.NoError(t, err)
	return s
}

func events(n int) []transitions.Logged {
	id := uuid.New()
	var list []transitions.Logged
	for i := range n {
		e := transitions.Event{
			Tenant: "a tenant with a name that is long", Position: int64(i + 1), Type: "order.pay", Workflow: "order", Instance: id,
			Payload: []byte(`{}`),
		}
		list = append(list, transitions.Logged{Event: e, CloudEvent: e.AppendCloudEvent(nil)})
	}
	return list
}

func TestMessageHasTopicIDAndMetadata(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "relay")
	batch := events(2)
	var ids []string
	s := open(t, watermill.Config{
		Topic: func(e *transitions.Event) string { return "cases-" + e.Workflow },
		Publisher: publisher(func(topic string, m *message.Message) error {
			assert.Truef(t, topic == "cases-order" && m.Context().Value(key{}) == "relay", "topic %q, context %v", topic, m.Context())
			for name, want := range map[string]string{
				"content-type": "application/cloudevents+json", "ce-type": "order.pay", "ce-subject": batch[0].Instance.String(),
			} {
				assert.Equal(t, want, m.Metadata.Get(name), name)
			}
			_, err := uuid.Parse(m.UUID)
			assert.NoErrorf(t, err, "%q is no UUID", m.UUID)
			ids = append(ids, m.UUID)
			clear(m.Payload) // subscribers may modify it
			return nil
		}),
	})
	for range 2 {
		require.Nil(t, s.Deliver(ctx, batch))
	}
	assert.Truef(t, ids[0] != ids[1] && ids[0] == ids[2] && ids[1] == ids[3], "ids %q", ids)
	assert.True(t, slices.Equal(batch[0].CloudEvent, batch[0].AppendCloudEvent(nil)), "the event was changed through the message")
}

func TestKindMapsErrors(t *testing.T) {
	broken := errors.New("broken")
	p := publisher(func(_ string, m *message.Message) error {
		if m.Metadata.Get("ce-position") == "2" {
			return broken
		}
		return nil
	})
	for want, kind := range map[sink.Kind]func(error) sink.Kind{
		sink.Unavailable: nil,
		sink.Permanent:   func(error) sink.Kind { return sink.Permanent },
	} {
		failures := open(t, watermill.Config{Publisher: p, Kind: kind}).Deliver(t.Context(), events(3))
		if failures == nil || failures[0] != nil || failures[1].Kind != want || !errors.Is(failures[1], broken) || failures[2].Kind != sink.Held {
			t.Errorf("%v, want %q", failures, want)
		}
	}
}

func TestEndedContextIsTemporary(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := open(t, watermill.Config{Publisher: publisher(func(_ string, m *message.Message) error {
		cancel()
		<-m.Context().Done()
		return m.Context().Err()
	})})
	failures := s.Deliver(ctx, events(2))
	assert.Truef(t, failures != nil && failures[0].Kind == sink.Temporary && failures[1].Kind == sink.Held, "failures: %v", failures)
}

func TestCloseReturnsPublishersError(t *testing.T) {
	s := open(t, watermill.Config{Publisher: publisher(func(string, *message.Message) error { return nil })})
	for range 2 {
		assert.ErrorIs(t, s.Close(t.Context()), errClose, "close")
	}
	_, err := watermill.New(watermill.Config{})
	assert.Error(t, err, "a missing publisher is not refused")
}
