package jetstream_test

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	upstream "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/transitions"
)

const limit = time.Minute

func events(n int) []transitions.Logged {
	id := uuid.New()
	var list []transitions.Logged
	for i := range n {
		e := transitions.Event{
			Tenant: "acme", Position: int64(i + 1), Type: "order.pay", Workflow: "order", Instance: id, Version: int64(i + 1),
			Transition: "pay", State: "Paid in full", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Payload: []byte(`{}`),
		}
		list = append(list, transitions.Logged{Event: e, CloudEvent: e.AppendCloudEvent(nil)})
	}
	return list
}

func mustDeliver(t *testing.T, s sink.Sink, events []transitions.Logged) {
	t.Helper()
	for i, f := range s.Deliver(t.Context(), events) {
		require.Nilf(t, f, "event %d", i)
	}
}

func TestMessageHasSubjectIDAndAttributes(t *testing.T) {
	server := natstest.Start(t)
	batch := events(1)
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	batch[0].Delivery = traceparent + " congo=t61"
	mustDeliver(t, open(t, jetstream.Config{URL: server.URL()}), batch)
	m := stored(t, server.URL())[0]
	assert.Truef(t, m.Subject == "pawl.acme.order.pay" && bytes.Equal(m.Data, batch[0].CloudEvent), "%s: %s", m.Subject, m.Data)
	for name, want := range map[string]string{
		"Nats-Msg-Id": "acme:1-0", "Content-Type": "application/cloudevents+json", "ce-specversion": "1.0", "ce-id": "1-0",
		"ce-source": "/pawl/acme", "ce-type": "order.pay", "ce-subject": batch[0].Instance.String(), "ce-time": "2026-01-02T03:04:05Z",
		"ce-position": "1", "ce-version": "1", "ce-workflow": "order", "ce-transition": "pay", "ce-state": "Paid%20in%20full",
		"traceparent": traceparent, "tracestate": "congo=t61",
	} {
		assert.Equal(t, want, m.Header.Get(name), name)
	}
}

func TestAbsentStreamIsCreated(t *testing.T) {
	server := natstest.Start(t)
	s := open(t, jetstream.Config{URL: server.URL(), Subject: "cases.{tenant}.{type}", Duplicates: 10 * time.Minute, MaxAge: time.Hour})
	mustDeliver(t, s, events(1))
	stream, err := client(t, server.URL()).Stream(t.Context(), "PAWL")
	require.NoError(t, err)
	c := stream.CachedInfo().Config
	assert.Truef(t, slices.Equal(c.Subjects, []string{"cases.*.>"}) && c.Duplicates == 10*time.Minute && c.MaxAge == time.Hour &&
		c.Storage == upstream.FileStorage,
		"the stream is %+v", c)
}

func TestExistingStreamIsNotChanged(t *testing.T) {
	server := natstest.Start(t)
	js := client(t, server.URL())
	before, err := js.CreateStream(t.Context(), upstream.StreamConfig{Name: "PAWL", Subjects: []string{"pawl.>"}, MaxAge: time.Hour})
	require.NoError(t, err)
	var log bytes.Buffer
	s := open(t, jetstream.Config{URL: server.URL(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	mustDeliver(t, s, events(2))
	after, err := js.Stream(t.Context(), "PAWL")
	require.NoError(t, err)
	if a, b := before.CachedInfo().Config, after.CachedInfo().Config; !slices.Equal(a.Subjects, b.Subjects) || a.MaxAge != b.MaxAge {
		t.Errorf("the stream was %+v and is %+v", a, b)
	}
	for _, want := range []string{`do not include \"pawl.*.>\"`, "1h0m0s, not 0s"} {
		assert.Contains(t, log.String(), want, "the log lacks")
	}
}

func TestDeletedStreamIsRecreated(t *testing.T) {
	server := natstest.Start(t)
	s := open(t, jetstream.Config{URL: server.URL()})
	batch := events(4)
	mustDeliver(t, s, batch[:2])
	require.NoError(t, client(t, server.URL()).DeleteStream(t.Context(), "PAWL"))
	failures := s.Deliver(t.Context(), batch[2:])
	require.Truef(t, failures != nil && failures[0].Kind == sink.Unavailable && failures[1].Kind == sink.Held,
		"without the stream: %v", failures)
	mustDeliver(t, s, batch[2:])
	assert.Len(t, stored(t, server.URL()), 2, "messages")
}

func TestFullStreamWaits(t *testing.T) {
	server := natstest.Start(t)
	_, err := client(t, server.URL()).CreateStream(t.Context(), upstream.StreamConfig{
		Name: "PAWL", Subjects: []string{"pawl.>"}, MaxMsgs: 2, Discard: upstream.DiscardNew,
	})
	require.NoError(t, err)
	failures := open(t, jetstream.Config{URL: server.URL()}).Deliver(t.Context(), events(4))
	assert.Truef(t, failures != nil && failures[1] == nil && failures[2].Kind == sink.Unavailable && failures[3].Kind == sink.Held,
		"failures: %v", failures)
}

// The duplicate window is the stream's, even if the stream existed before.
func TestDuplicateWindowIsTheStreams(t *testing.T) {
	server := natstest.Start(t)
	s := open(t, jetstream.Config{URL: server.URL()})
	assert.Equal(t, 20*time.Minute, s.DuplicateWindow(), "before the stream is known")
	_, err := client(t, server.URL()).CreateStream(t.Context(), upstream.StreamConfig{Name: "PAWL", Subjects: []string{"pawl.>"},
		Duplicates: time.Minute})
	require.NoError(t, err)
	mustDeliver(t, s, events(1))
	assert.Equal(t, time.Minute, s.DuplicateWindow(), "a stream that remembers for a minute")
}
