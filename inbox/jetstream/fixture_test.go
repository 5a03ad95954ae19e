package jetstream_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	upstream "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inbox/jetstream"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/transitions"
)

const limit = time.Minute

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// stream is the stream PAYMENTS with a publisher.
type stream struct {
	conn   *nats.Conn
	js     upstream.JetStream
	stream upstream.Stream
	sent   int
}

func newStream(t *testing.T, server *natstest.Server) *stream {
	t.Helper()
	return newStreamAt(t, server.URL())
}

func newStreamAt(t *testing.T, url string) *stream {
	t.Helper()
	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	s := &stream{conn: conn}
	s.js, err = upstream.New(conn)
	require.NoError(t, err)
	s.stream, err = s.js.CreateStream(t.Context(), upstream.StreamConfig{Name: "PAYMENTS", Subjects: []string{"payments.>"}})
	require.NoError(t, err)
	return s
}

func (s *stream) publish(t *testing.T, m nats.Msg) {
	t.Helper()
	_, err := s.js.PublishMsg(bounded(t), &m)
	require.NoError(t, err)
}

// publishIDs publishes messages with the next ids, m-1 and so on.
func (s *stream) publishIDs(t *testing.T, n int) {
	t.Helper()
	for range n {
		s.sent++
		s.publish(t, nats.Msg{Subject: "payments.captured", Header: nats.Header{"Nats-Msg-Id": {fmt.Sprint("m-", s.sent)}}})
	}
}

// reconnected waits until the publisher has access to the stream.
func (s *stream) reconnected(t *testing.T) {
	t.Helper()
	await.Eventually(t, "the publisher is connected", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.stream.Info(ctx)
		return err == nil
	})
}

// wantAllAcknowledged waits until the durable consumer has no pending messages.
func (s *stream) wantAllAcknowledged(t *testing.T) {
	t.Helper()
	await.Eventually(t, "all is acknowledged", func() bool {
		c, err := s.stream.Consumer(bounded(t), "pawl-payments")
		if err != nil {
			return false // not created yet
		}
		i := c.CachedInfo()
		return i.NumPending == 0 && i.NumAckPending == 0
	})
}

// node is a running source.
type node struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu  sync.Mutex
	all []transitions.Message // in the order of the calls of consume
}

func done(context.Context, transitions.Message) error { return nil }

func newSource(t *testing.T, c jetstream.Config) *jetstream.Source {
	t.Helper()
	s, err := jetstream.New(c)
	require.NoError(t, err)
	return s
}

// run runs a source until the test ends.
func run(t *testing.T, c jetstream.Config, consume func(context.Context, transitions.Message) error) *node {
	return runFor(t, t.Context(), c, consume)
}

func runFor(t *testing.T, ctx context.Context, c jetstream.Config, consume func(context.Context, transitions.Message) error) *node {
	t.Helper()
	n := &node{ended: make(chan struct{})}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	ctx, n.cancel = context.WithCancel(ctx)
	source := newSource(t, c)
	go func() {
		defer close(n.ended)
		err := source.Run(ctx, func(ctx context.Context, m transitions.Message) error {
			n.mu.Lock()
			n.all = append(n.all, m)
			n.mu.Unlock()
			return consume(ctx, m)
		})
		assert.NoError(t, err)
	}()
	t.Cleanup(func() { n.stop(t) })
	return n
}

func (n *node) stop(t *testing.T) {
	t.Helper()
	n.cancel()
	n.wait(t)
}

func (n *node) wait(t *testing.T) {
	t.Helper()
	await.Receive(t, "it ends", n.ended)
}

func (n *node) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all)
}

func (n *node) atLeast(t *testing.T, count int) {
	t.Helper()
	await.Eventually(t, fmt.Sprint("there are messages: ", count), func() bool { return n.count() >= count })
}

// first waits for the first message.
func (n *node) first(t *testing.T) transitions.Message {
	t.Helper()
	n.atLeast(t, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[0]
}

// messages waits for a number of messages.
func (n *node) messages(t *testing.T, count int) []transitions.Message {
	t.Helper()
	n.atLeast(t, count)
	n.mu.Lock()
	defer n.mu.Unlock()
	assert.Len(t, n.all, count, "messages")
	return append([]transitions.Message(nil), n.all...)
}

// distinct waits for a number of different messages.
func (n *node) distinct(t *testing.T, count int) {
	t.Helper()
	await.Eventually(t, fmt.Sprint("there are different messages: ", count), func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		ids := map[string]bool{}
		for _, m := range n.all {
			ids[m.ID] = true
		}
		return len(ids) == count
	})
}
