package relay

import (
	"context"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/tracing"
)

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
				span.End(sent(failures[i]))
			}
		}
	}
}

// sent returns the outcome of a delivery's span.
func sent(f *sink.Failure) tracing.Outcome {
	if f == nil {
		return tracing.Outcome{}
	}
	return tracing.Outcome{Error: string(f.Kind)}
}
