package jetstream

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
)

// message is what is consumed of a message of the stream. One that is older than the
// durable consumer may have been delivered by an earlier one of that name.
func (c *Config) message(m jetstream.Msg, made time.Time) (transitions.Message, error) {
	place, err := m.Metadata()
	if err != nil {
		return transitions.Message{}, fmt.Errorf("a message without its place in the stream: %w", err)
	}
	return transitions.Message{
		Tenant: c.Tenant, Consumer: c.Consumer, ID: c.id(m.Headers(), place), Type: c.kind(m), Body: m.Data(),
		Delivery: int(place.NumDelivered), Earlier: place.Timestamp.Before(made),
		Keep: c.Keep, Headers: m.Headers(),
		Trace: traceOf(m.Headers()),
	}, nil
}

// traceOf is the trace that a message was sent in. The names of headers have cases in NATS; some
// senders write them as in HTTP.
func traceOf(h nats.Header) tracing.Context {
	return tracing.Of(slices.Concat(h["traceparent"], h["Traceparent"]), slices.Concat(h["tracestate"], h["Tracestate"]))
}

// id is by what a message is recognized. A sender's id that cannot be stored is
// replaced by its digest: the message would otherwise have no name under which
// it could be listed as dead.
func (c *Config) id(h nats.Header, place *jetstream.MsgMetadata) string {
	id := h.Get(jetstream.MsgIDHeader)
	if id == "" && c.IDHeader != "" {
		id = h.Get(c.IDHeader)
	}
	if id == "" {
		// The time tells it from a message at the same place of an earlier stream
		// with this name.
		return fmt.Sprintf("%s:%d:%d", place.Stream, place.Sequence.Stream, place.Timestamp.UnixNano())
	}
	if transitions.CheckKey(id) != nil {
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(id)))
	}
	return id
}

// kind is what the sender calls a message, as far as it can be stored.
func (c *Config) kind(m jetstream.Msg) string {
	kind := m.Headers().Get(c.TypeHeader)
	if kind == "" {
		kind = m.Subject()
	}
	if transitions.TextProblem(kind, transitions.MaxKey) != "" {
		kind = strings.ReplaceAll(strings.ToValidUTF8(kind, "\uFFFD"), "\x00", "\uFFFD")
		kind = strings.ToValidUTF8(kind[:min(len(kind), transitions.MaxKey)], "")
	}
	return kind
}
