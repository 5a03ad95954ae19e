package jetstream

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
)

type workers struct {
	config  *Config
	made    time.Time // creation time of the durable consumer
	consume func(context.Context, transitions.Message) error
	slots   chan struct{} // one per message in progress
	work    sync.WaitGroup

	done       chan struct{} // closed after the last message
	heartbeats sync.WaitGroup

	mu   sync.Mutex
	held map[jetstream.Msg]struct{} // messages being consumed

	failing atomic.Bool // the last message could not be consumed
}

// beatsPerWait is the number of heartbeats per heartbeat timeout of a consumer.
const beatsPerWait = 3

func newWorkers(config *Config, durable *jetstream.ConsumerInfo, consume func(context.Context, transitions.Message) error) *workers {
	h := &workers{
		config: config, made: durable.Created, consume: consume, slots: make(chan struct{}, config.Concurrency),
		done: make(chan struct{}), held: make(map[jetstream.Msg]struct{}),
	}
	wait := durable.Config.AckWait
	if backOff := durable.Config.BackOff; len(backOff) > 0 {
		wait = slices.Min(backOff) // replaces AckWait
	}
	h.heartbeats.Go(func() { h.heartbeat(wait / beatsPerWait) })
	return h
}

// acquire waits for free slots and acquires them. It returns their number, or 0 if ctx has ended.
func (h *workers) acquire(ctx context.Context) int {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	if ctx.Err() != nil { // both channels were ready
		h.release(1)
		return 0
	}
	for n := 1; ; n++ {
		select {
		case h.slots <- struct{}{}:
		default:
			return n
		}
	}
}

func (h *workers) release(n int) {
	for range n {
		<-h.slots
	}
}

func (h *workers) handle(ctx context.Context, m jetstream.Msg) {
	message, err := h.config.message(m, h.made)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		h.mu.Lock()
		h.held[m] = struct{}{}
		h.mu.Unlock()
		err = h.consume(ctx, message)
		h.mu.Lock()
		delete(h.held, m)
		h.mu.Unlock()
	}
	if err == nil {
		h.acknowledge(ctx, m, &message)
		return
	}
	if ctx.Err() != nil { // redeliver to another node at once
		err = m.Nak()
	} else {
		delay := h.config.delay(message.Delivery)
		if !h.failing.Swap(true) { // once per outage
			h.config.Log.Warn("jetstream: messages could not be consumed; retrying", "consumer", h.config.Consumer, "id", message.ID,
				"delivery", message.Delivery, "in", delay, "error", err)
		}
		err = m.NakWithDelay(delay)
	}
	if err != nil {
		h.config.Log.Info("jetstream: cannot request a redelivery; waiting for the acknowledgement timeout", "consumer", h.config.Consumer, "id", message.ID, "error", err)
	}
}

func (h *workers) acknowledge(ctx context.Context, m jetstream.Msg, message *transitions.Message) {
	if h.failing.Swap(false) {
		h.config.Log.Info("jetstream: messages are consumed again", "consumer", h.config.Consumer)
	}
	var err error
	if ctx.Err() != nil {
		err = m.Ack() // no time to wait
	} else {
		ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
		defer cancel()
		err = m.DoubleAck(ctx)
	}
	if err != nil && ctx.Err() == nil {
		h.config.Log.Warn("jetstream: cannot acknowledge a message; it is redelivered and recognized",
			"consumer", h.config.Consumer, "id", message.ID, "error", err)
	}
}

func (h *workers) heartbeat(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-h.done:
			return
		}
		h.mu.Lock()
		for m := range h.held {
			if m.InProgress() != nil {
				break // disconnected, so all fail
			}
		}
		h.mu.Unlock()
	}
}

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
