package relay

import (
	"context"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/tracing"
)

// traceCall begins a span for each event of a call whose trace is sampled, and returns what ends
// them. The events are the call's own copies, so each names its span to the receiver.
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
				span.End(sent(failures[i]))
			}
		}
	}
}

// sent is how the span of a delivery ends.
func sent(f *sink.Failure) tracing.Outcome {
	if f == nil {
		return tracing.Outcome{}
	}
	return tracing.Outcome{Error: string(f.Kind)}
}
