package jetstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pawlhq/pawl/transitions"
)

// hands work on messages, a bounded number at once.
type hands struct {
	config  *Config
	made    time.Time // the durable consumer
	consume func(context.Context, transitions.Message) error
	slots   chan struct{} // one for each message in hand
	work    sync.WaitGroup

	done    chan struct{} // closed when all work is done
	keeping sync.WaitGroup

	mu   sync.Mutex
	held map[jetstream.Msg]struct{} // those that are being consumed

	failing atomic.Bool // the last one could not be consumed
}

// signs is how often a sign of life is given within the time that a consumer
// waits for one.
const signs = 3

func newHands(config *Config, durable *jetstream.ConsumerInfo, consume func(context.Context, transitions.Message) error) *hands {
	h := &hands{
		config: config, made: durable.Created, consume: consume, slots: make(chan struct{}, config.Concurrency),
		done: make(chan struct{}), held: make(map[jetstream.Msg]struct{}),
	}
	h.keeping.Go(func() { h.keep(patience(durable.Config) / signs) })
	return h
}

// free waits for free hands and says how many there are; take and release give
// them back. 0: ctx has ended.
func (h *hands) free(ctx context.Context) int {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	if ctx.Err() != nil { // both happened
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

func (h *hands) release(n int) {
	for range n {
		<-h.slots
	}
}

// take works on a message in the background, with one of the hands that are
// free.
func (h *hands) take(ctx context.Context, m jetstream.Msg) {
	h.work.Go(func() {
		defer h.release(1)
		h.handle(ctx, m)
	})
}

// stop waits for the messages in hand.
func (h *hands) stop() {
	h.work.Wait()
	close(h.done)
	h.keeping.Wait()
}

func (h *hands) handle(ctx context.Context, m jetstream.Msg) {
	message, err := h.config.message(m, h.made)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		h.hold(m)
		err = h.consume(ctx, message)
		h.let(m)
	}
	if err == nil {
		h.acknowledge(ctx, m, &message)
		return
	}
	if ctx.Err() != nil { // another node may have it at once
		err = m.Nak()
	} else {
		delay := h.config.delay(message.Delivery)
		if !h.failing.Swap(true) { // once, not for each message of an outage
			h.config.Log.Warn("jetstream: messages have to come again", "consumer", h.config.Consumer, "id", message.ID,
				"delivery", message.Delivery, "in", delay, "error", err)
		}
		err = m.NakWithDelay(delay)
	}
	if err != nil {
		h.config.Log.Info("jetstream: a message comes again in its time only", "consumer", h.config.Consumer, "id", message.ID, "error", err)
	}
}

// acknowledge tells the server that it need not deliver a message again, and
// waits until it knows.
func (h *hands) acknowledge(ctx context.Context, m jetstream.Msg, message *transitions.Message) {
	if h.failing.Swap(false) {
		h.config.Log.Info("jetstream: messages are consumed again", "consumer", h.config.Consumer)
	}
	var err error
	if ctx.Err() != nil {
		err = m.Ack() // there is no time to wait
	} else {
		ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
		defer cancel()
		err = m.DoubleAck(ctx)
	}
	if err != nil && ctx.Err() == nil {
		h.config.Log.Warn("jetstream: an acknowledgement was lost; the message comes again and will be recognized",
			"consumer", h.config.Consumer, "id", message.ID, "error", err)
	}
}

func (h *hands) hold(m jetstream.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[m] = struct{}{}
}

func (h *hands) let(m jetstream.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, m)
}

// keep gives signs of life for the messages in hand, so that the server does not
// give them to another node.
func (h *hands) keep(every time.Duration) {
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
				break // disconnected: for all of them
			}
		}
		h.mu.Unlock()
	}
}
