// Package watermill delivers events through any publisher of Watermill (https://watermill.io):
// Kafka, RabbitMQ, Amazon SQS, Google Cloud Pub/Sub, SQL and others.
//
// The payload of a message is the CloudEvent. Its metadata contain the content type and the event's
// attributes (ce-type, ce-instance and so on). A partitioned broker keeps the order of an instance
// if it partitions by ce-instance.
//
// Publishers accept several messages at once, but most do not report which of them failed. Each
// event is therefore published separately; throughput comes from concurrent deliveries.
package watermill

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// Config configures a Watermill sink.
type Config struct {
	// Publisher publishes messages. It must return only after the broker has a message;
	// asynchronous publishers lose events when they fail. The sink closes it.
	Publisher message.Publisher
	// Topic returns the topic of an event. Defaults to "pawl" for all.
	Topic func(*transitions.Event) string
	// Kind maps an error of the publisher. Defaults to [sink.Unavailable]. It should return
	// [sink.Permanent] for messages that the broker never accepts.
	Kind func(error) sink.Kind
}

// Sink publishes through a publisher.
type Sink struct {
	config Config

	mu      sync.Mutex
	closed  bool
	failure error // result of closing
}

// New returns a sink for a publisher.
func New(c Config) (*Sink, error) {
	if c.Publisher == nil {
		return nil, errors.New("watermill sink: Publisher is required")
	}
	if c.Topic == nil {
		c.Topic = func(*transitions.Event) string { return "pawl" }
	}
	if c.Kind == nil {
		c.Kind = func(error) sink.Kind { return sink.Unavailable }
	}
	return &Sink{config: c}, nil
}

// Deliver implements [sink.Sink]. The message carries ctx. If the publisher ignores it, Deliver
// waits, because otherwise a message could be published after its successors.
func (s *Sink) Deliver(ctx context.Context, events []transitions.Logged) []*sink.Failure {
	return sink.InOrder(ctx, events, s.publish)
}

func (s *Sink) publish(ctx context.Context, e *transitions.Logged) *sink.Failure {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return sink.Fail(sink.Unavailable, nil, "the sink is closed")
	}
	id := uuid.NewSHA1(namespace, []byte(sink.MessageID(&e.Event))).String() // some brokers limit the length of ids
	// Copy the payload: in-process subscribers receive these bytes, and other sinks share the
	// event.
	m := message.NewMessageWithContext(ctx, id, bytes.Clone(e.CloudEvent))
	m.Metadata.Set("content-type", sink.ContentType)
	for name, value := range sink.Attributes(&e.Event) {
		m.Metadata.Set("ce-"+name, value)
	}
	for name, value := range sink.Trace(e) {
		m.Metadata.Set(name, value)
	}
	if err := s.config.Publisher.Publish(s.config.Topic(&e.Event), m); err != nil {
		if ctx.Err() != nil {
			return sink.CutOff(ctx)
		}
		return sink.Fail(s.config.Kind(err), err, "the publisher failed: %v", err)
	}
	return nil
}

var namespace = uuid.MustParse("5d7c0f6e-2b0b-4a36-9d7e-0c2f6a1f7b3d")

// Close implements [sink.Sink]. It closes the publisher once.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.failure = s.config.Publisher.Close()
	}
	return s.failure
}
