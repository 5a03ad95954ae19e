package relay

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// sinkCalls are a holder's calls to its sink.
type sinkCalls struct {
	results  chan callResult
	ctx      context.Context // of every call
	cancel   context.CancelCauseFunc
	stopping bool             // they were told to end
	grace    <-chan time.Time // until it is no longer waited for them
	left     bool             // those that go on are left alone
}

// callResult is what a call came to.
type callResult struct {
	call     *call
	failures []*sink.Failure
}

func newSinkCalls(most int) sinkCalls {
	c := sinkCalls{results: make(chan callResult, most)}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// breakOff tells the calls to end, and waits a while for those that do not.
func (c *sinkCalls) breakOff() {
	c.stopping = true
	c.cancel(errStopping)
	c.grace = time.After(stopGrace)
}

// startCalls makes the calls that can be made.
func (h *holder) startCalls(now time.Time) {
	for c := h.flow.next(now); c != nil; c = h.flow.next(now) {
		go h.deliver(c)
	}
}

// deliver makes a call.
func (h *holder) deliver(c *call) {
	ctx, cancel := context.WithTimeoutCause(h.calls.ctx, h.sink.Timeout, errTimeout)
	defer cancel()
	late := time.AfterFunc(h.sink.Timeout+stopGrace, func() { h.signals.send(func(s *signals) { s.late = append(s.late, c) }) })
	defer late.Stop()
	end := h.traceCall(ctx, c)
	failures := h.callSink(ctx, c)
	end(failures)
	h.calls.results <- callResult{c, failures}
}

// callSink calls the sink. A sink that panics, or answers what cannot be, counts as
// unavailable.
func (h *holder) callSink(ctx context.Context, c *call) (failures []*sink.Failure) {
	broken := func(format string, args ...any) []*sink.Failure {
		return sink.Together(context.Background(), c.events, sink.Fail(sink.Unavailable, nil, format, args...))
	}
	defer func() {
		if v := recover(); v != nil {
			h.relay.config.Log.Error("a sink panicked", "sink", h.sink.Name, "panic", v, "stack", string(debug.Stack()))
			failures = broken("the sink panicked: %v", v)
		}
	}()
	switch failures = h.sink.To.Deliver(ctx, c.events); {
	case failures == nil:
		return make([]*sink.Failure, len(c.events))
	case len(failures) != len(c.events):
		return broken("the sink answered for %d events of %d", len(failures), len(c.events))
	case !slices.ContainsFunc(failures, func(f *sink.Failure) bool { return f == nil || f.Kind != sink.Held }):
		return broken("the sink has tried none of the events")
	}
	return failures
}

// settle takes in what a call came to, and logs when the receiver as a whole goes
// away and comes back.
func (h *holder) settle(r callResult, now time.Time) {
	f := h.flow
	was := f.circuit.failures > 0
	if r.call.abandoned {
		h.endedLate(r.call, now)
		return
	}
	r.call.ended = true
	f.settle(r.call, r.failures, now)
	switch is := f.circuit.failures > 0; {
	case is && !was:
		h.relay.config.Log.Warn("a sink's receiver takes no events; it is tried until it does", "sink", h.sink.Name, "failure", f.pending.failure)
	case was && !is:
		h.relay.config.Log.Info("a sink's receiver takes events again", "sink", h.sink.Name)
	}
}

// abandon waits no longer for calls that ignore their timeout, unless they have just
// ended.
func (h *holder) abandon(late []*call, now time.Time) {
	for _, c := range late {
		if c.ended {
			continue
		}
		h.flow.abandon(c, now)
		h.relay.config.Log.Warn("a sink ignores that its call took too long; "+
			"nothing else of these instances is delivered before it ends, or the sink is paused", "sink", h.sink.Name, "events", len(c.events),
			"timeout", h.sink.Timeout, "calls", h.flow.calls.abandoned)
	}
}

// endedLate takes in that an abandoned call has ended.
func (h *holder) endedLate(c *call, now time.Time) {
	h.flow.ended(c, now)
	for _, it := range c.items {
		if l := h.logs.of[it.queue.tenant]; l != nil && l.unloaded { // perhaps because of the call
			h.logs.resume([]*tenantLog{l})
		}
	}
}
