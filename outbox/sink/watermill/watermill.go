// Package watermill delivers events through any publisher of Watermill
// (https://watermill.io): Kafka, RabbitMQ, Amazon SQS, Google Cloud Pub/Sub, SQL
// and others.
//
// A message's payload is the CloudEvent. Its metadata are the content type and
// the event's attributes (ce-type, ce-instance and so on). A broker that spreads
// a topic over partitions keeps the order of an instance when it partitions by
// ce-instance.
//
// Publishers take several messages at a time, but most cannot say which of them
// were published when one fails. So each event is a call of its own, and
// throughput comes from what the relay delivers side by side.
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

// Config says where the events go.
type Config struct {
	// Publisher publishes. It has to return only when the broker has the message:
	// one that works asynchronously loses events when it fails. The sink closes it.
	Publisher message.Publisher
	// Topic is the topic of an event; nil is "pawl" for all.
	Topic func(*transitions.Event) string
	// Kind says what an error of the publisher means; nil takes each for one of the
	// broker, [sink.Unavailable]. Only the publisher's errors tell a message that
	// will never be taken: that is [sink.Permanent].
	Kind func(error) sink.Kind
}

// Sink publishes through a publisher.
type Sink struct {
	config Config

	mu      sync.Mutex
	closed  bool
	failure error // of closing
}

// New prepares to publish.
func New(c Config) (*Sink, error) {
	if c.Publisher == nil {
		return nil, errors.New("watermill sink: the publisher is missing")
	}
	if c.Topic == nil {
		c.Topic = func(*transitions.Event) string { return "pawl" }
	}
	if c.Kind == nil {
		c.Kind = func(error) sink.Kind { return sink.Unavailable }
	}
	return &Sink{config: c}, nil
}

// Deliver implements [sink.Sink]. The publisher finds ctx in the message; one
// that ignores it ends an attempt when it pleases, and Deliver waits:
// otherwise a message could be published after those that follow it.
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
	// The payload is a copy: in-process subscribers get these very bytes, and the
	// event belongs to other sinks too.
	m := message.NewMessageWithContext(ctx, messageUUID(&e.Event), bytes.Clone(e.CloudEvent))
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

// namespace is that of the messages' UUIDs.
var namespace = uuid.MustParse("5d7c0f6e-2b0b-4a36-9d7e-0c2f6a1f7b3d")

// messageUUID is the message id as a UUID (version 5): some brokers have room
// for no more.
func messageUUID(e *transitions.Event) string {
	return uuid.NewSHA1(namespace, []byte(sink.MessageID(e))).String()
}

// Close implements [sink.Sink]: it closes the publisher, once.
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.failure = s.config.Publisher.Close()
	}
	return s.failure
}
