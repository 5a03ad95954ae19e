package relay

import (
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/tracing"
)

type sinkCalls struct {
	results  chan callResult
	ctx      context.Context // parent of all calls
	cancel   context.CancelCauseFunc
	stopping bool             // ctx is cancelled
	grace    <-chan time.Time // ends the wait for calls after the cancellation
	left     bool             // the wait is over; remaining calls are abandoned
}

type callResult struct {
	call     *call
	failures []*sink.Failure
}

func (h *holder) startCalls(now time.Time) {
	for c := h.flow.next(now); c != nil; c = h.flow.next(now) {
		go h.deliver(c)
	}
}

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

// callSink calls the sink. A panic or an invalid result counts as a temporary failure.
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
		return broken("the sink returned %d results for %d events", len(failures), len(c.events))
	case !slices.ContainsFunc(failures, func(f *sink.Failure) bool { return f == nil || f.Kind != sink.Held }):
		return broken("the sink tried none of the events")
	}
	return failures
}

// handleResult applies the result of a call and logs when the circuit opens or closes.
func (h *holder) handleResult(r callResult, now time.Time) {
	f := h.flow
	was := f.circuit.failures > 0
	if r.call.abandoned {
		f.callEnded(r.call, now)
		for _, it := range r.call.items {
			if l := h.logs.byTenant[it.queue.tenant]; l != nil && l.unloaded { // perhaps because of the call
				h.logs.resume([]*tenantLog{l})
			}
		}
		return
	}
	r.call.ended = true
	f.applyResults(r.call, r.failures, now)
	switch is := f.circuit.failures > 0; {
	case is && !was:
		h.relay.config.Log.Warn("the receiver of a sink fails; retrying", "sink", h.sink.Name, "failure", f.pending.failure)
	case was && !is:
		h.relay.config.Log.Info("the receiver of a sink accepts events again", "sink", h.sink.Name)
	}
}

// abandon abandons calls that ignored their timeout and have not ended since.
func (h *holder) abandon(late []*call, now time.Time) {
	for _, c := range late {
		if c.ended {
			continue
		}
		h.flow.abandon(c, now)
		h.relay.config.Log.Warn("a call of a sink ignores its timeout; "+
			"its instances wait until it returns or the sink is paused", "sink", h.sink.Name, "events", len(c.events),
			"timeout", h.sink.Timeout, "calls", h.flow.calls.abandoned)
	}
}

// traceCall starts a span for each sampled event of a call and returns a function that ends them.
// The events are copies that carry the span's context to the receiver.
func (h *holder) traceCall(ctx context.Context, c *call) (end func([]*sink.Failure)) {
	t := h.relay.config.Tracer
	if t == nil {
		return func([]*sink.Failure) {}
	}
	var spans []tracing.Span // nil: no event is traced
	for i := range c.events {
		e := &c.events[i]
		if e.Trace == "" {
			continue
		}
		if spans == nil {
			spans = make([]tracing.Span, len(c.events))
		}
		_, spans[i] = tracing.Start(ctx, t, tracing.Step{Kind: tracing.Send, Parent: e.Trace, Tenant: e.Tenant, Workflow: e.Workflow,
			Transition: e.Transition, Instance: e.Instance, Name: h.sink.Name, ID: e.ID(), Type: e.Type})
		e.Delivery = spans[i].Context()
	}
	return func(failures []*sink.Failure) {
		for i, span := range spans {
			if span != nil {
				outcome := tracing.Outcome{}
				if f := failures[i]; f != nil {
					outcome.Error = string(f.Kind)
				}
				span.End(outcome)
			}
		}
	}
}
