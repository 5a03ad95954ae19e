package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// reconnectWait is between two attempts to reach a server.
const reconnectWait = 500 * time.Millisecond

// Sink publishes to a stream.
type Sink struct {
	config  Config
	subject subject
	conn    *nats.Conn
	js      jetstream.JetStream

	known  atomic.Bool   // the stream is there
	window atomic.Int64  // how long it remembers ids, in ns; as configured until it is known
	asking chan struct{} // holds the one that asks for it
}

// New prepares to publish and tries to connect. The server need not be there
// yet: the sink goes on trying.
func New(c Config) (*Sink, error) {
	subject, err := c.check()
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(c.URL, append([]nats.Option{
		nats.Name("pawl"),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.IgnoreAuthErrorAbort(),
		// What cannot be sent at once fails at once: it would be sent at a time
		// when nobody waits for it any more.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.Log.Warn("jetstream: disconnected", "error", err)
			}
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) { c.Log.Info("jetstream: connected", "server", conn.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.Log.Warn("jetstream: the server complains", "error", err)
		}),
	}, c.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	js, err := jetstream.New(conn,
		jetstream.WithPublishAsyncMaxPending(math.MaxInt32), // Deliver bounds them itself
		jetstream.WithPublishAsyncTimeout(c.Timeout))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	s := &Sink{config: c, subject: subject, conn: conn, js: js, asking: make(chan struct{}, 1)}
	s.window.Store(int64(c.Duplicates))
	return s, nil
}

// Deliver implements [sink.Sink].
func (s *Sink) Deliver(ctx context.Context, events []transitions.Logged) []*sink.Failure {
	if len(events) == 0 {
		return nil
	}
	if err := s.ready(ctx); err != nil {
		return sink.Together(ctx, events, sink.Fail(sink.Unavailable, err, "%v", err))
	}
	b := sink.NewBatch(events)
	for _, wave := range sink.Waves(events) {
		s.publish(ctx, b, events, wave)
	}
	return b.Failures()
}

// flight is a message that waits for its acknowledgement.
type flight struct {
	event int
	ack   jetstream.PubAckFuture
}

// publish publishes events of different instances, and returns when it knows
// what became of them.
func (s *Sink) publish(ctx context.Context, b *sink.Batch, events []transitions.Logged, wave []int) {
	var flights []flight // those that are still waited for, the oldest first
	for _, i := range wave {
		if len(flights) == s.config.InFlight {
			s.await(ctx, b, flights[0])
			flights = flights[1:]
		}
		if ctx.Err() != nil {
			b.Stop()
		}
		if b.Skip(i) {
			continue
		}
		ack, err := s.js.PublishMsgAsync(s.message(&events[i]), jetstream.WithRetryAttempts(0))
		if err != nil {
			b.Record(i, failure(err))
			continue
		}
		flights = append(flights, flight{i, ack})
	}
	for _, f := range flights {
		s.await(ctx, b, f)
	}
}

// await waits until it is known what became of a message.
func (s *Sink) await(ctx context.Context, b *sink.Batch, f flight) {
	select {
	case <-f.ack.Ok():
	case err := <-f.ack.Err():
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			s.known.Store(false)
		}
		b.Record(f.event, failure(err))
	case <-ctx.Done():
		b.Record(f.event, sink.CutOff(ctx))
	}
}

// message is what is published of an event.
func (s *Sink) message(e *transitions.Logged) *nats.Msg {
	h := nats.Header{
		jetstream.MsgIDHeader:          {sink.MessageID(&e.Event)},
		jetstream.ExpectedStreamHeader: {s.config.Stream},
		"Content-Type":                 {sink.ContentType},
	}
	for name, value := range sink.Attributes(&e.Event) {
		h["ce-"+name] = []string{value}
	}
	for name, value := range sink.Trace(e) {
		h[name] = []string{value}
	}
	return &nats.Msg{Subject: s.subject.of(&e.Event), Header: h, Data: e.CloudEvent}
}

// Check implements [sink.Checker]: it asks for the stream, and makes it if it is
// absent.
func (s *Sink) Check(ctx context.Context) error {
	_, err := s.ensure(ctx)
	return err
}

// DuplicateWindow implements [sink.Deduplicator]: it is the stream's, also of one that
// was there before.
func (s *Sink) DuplicateWindow() time.Duration { return time.Duration(s.window.Load()) }

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error {
	s.conn.Close()
	return nil
}
