// Package jetstream publishes events to a NATS JetStream stream.
//
// The body of a message is the CloudEvent. Its attributes are repeated in headers (ce-type,
// ce-subject and so on). The subject contains tenant, workflow and type, so that consumers can
// filter without parsing.
//
// # Order and repetitions
//
// Messages are published concurrently, except that an event is only sent after earlier ones of its
// instance were acknowledged, because a server may refuse one message and store the next. A batch
// therefore takes as many round trips as it has events of one instance.
//
// Every message carries its id ([sink.MessageID]) as Nats-Msg-Id. If a message is published again
// because its acknowledgement was lost, the stream drops it within its duplicate window. The relay
// waits at most half of this window between attempts. Only after an outage longer than the window
// can a message be in the stream twice; consumers recognize it by its id. The window costs server
// memory, so it is limited. Ids consist of tenant and position. Several installations that share a
// stream must each set a source (engine.Config.Source), which is then part of the id.
//
// # Acknowledgements
//
// An acknowledgement means that a majority of the stream's replicas have the message, or the
// process of a single server. The server's sync_interval determines when it is written to disk.
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

const reconnectWait = 500 * time.Millisecond

// Sink publishes to a stream.
type Sink struct {
	config  Config
	subject subject
	conn    *nats.Conn
	js      jetstream.JetStream

	known  atomic.Bool   // the stream exists
	window atomic.Int64  // duplicate window in ns; the configured one until known
	asking chan struct{} // semaphore for stream requests
}

// New returns a sink and starts to connect. If no server is reachable, it keeps trying.
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
		// Fail at once instead of sending later, when no call waits for the result.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.Log.Warn("jetstream: disconnected", "error", err)
			}
		}),
		nats.ReconnectHandler(func(conn *nats.Conn) { c.Log.Info("jetstream: connected", "server", conn.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.Log.Warn("jetstream: server error", "error", err)
		}),
	}, c.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	js, err := jetstream.New(conn,
		jetstream.WithPublishAsyncMaxPending(math.MaxInt32), // Deliver bounds them
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
		// The events of a wave belong to different instances.
		var flights []flight // unacknowledged, oldest first
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
	return b.Failures()
}

type flight struct {
	event int
	ack   jetstream.PubAckFuture
}

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

// Check implements [sink.Checker]. It creates the stream if absent.
func (s *Sink) Check(ctx context.Context) error {
	_, err := s.ensure(ctx)
	return err
}

// DuplicateWindow implements [sink.Deduplicator] with the window of the existing stream.
func (s *Sink) DuplicateWindow() time.Duration { return time.Duration(s.window.Load()) }

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error {
	s.conn.Close()
	return nil
}
