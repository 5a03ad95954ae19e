package jetstream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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
