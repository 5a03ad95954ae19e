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

// message converts a message. Messages older than the durable consumer may have been delivered by
// an earlier consumer of this name.
func (c *Config) message(m jetstream.Msg, made time.Time) (transitions.Message, error) {
	place, err := m.Metadata()
	if err != nil {
		return transitions.Message{}, fmt.Errorf("message without metadata: %w", err)
	}
	h := m.Headers() // names are case-sensitive in NATS; some senders use those of HTTP
	return transitions.Message{
		Tenant: c.Tenant, Consumer: c.Consumer, ID: c.id(h, place), Type: c.kind(m), Body: m.Data(),
		Delivery: int(place.NumDelivered), Earlier: place.Timestamp.Before(made),
		Keep: c.Keep, Headers: h,
		Trace: tracing.Of(slices.Concat(h["traceparent"], h["Traceparent"]), slices.Concat(h["tracestate"], h["Tracestate"])),
	}, nil
}

// id returns the id of a message. Ids that cannot be stored are replaced by their digest, so that
// the message can be listed as dead.
func (c *Config) id(h nats.Header, place *jetstream.MsgMetadata) string {
	id := h.Get(jetstream.MsgIDHeader)
	if id == "" && c.IDHeader != "" {
		id = h.Get(c.IDHeader)
	}
	if id == "" {
		// The time distinguishes it from a message of an earlier stream with this name.
		return fmt.Sprintf("%s:%d:%d", place.Stream, place.Sequence.Stream, place.Timestamp.UnixNano())
	}
	if transitions.CheckKey(id) != nil {
		return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(id)))
	}
	return id
}

// kind returns the type of a message in storable form.
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
