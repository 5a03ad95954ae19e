package opentelemetry

import (
	"slices"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl/tracing"
)

// kinds are the options with the span kinds. They are allocated once, because most spans are not
// sampled.
var kinds = [...][]trace.SpanStartOption{
	tracing.Request: kind(trace.SpanKindServer), tracing.Submit: kind(trace.SpanKindInternal), tracing.Consume: kind(trace.SpanKindConsumer),
	tracing.Commit: kind(trace.SpanKindClient), tracing.Attempt: kind(trace.SpanKindInternal), tracing.Undo: kind(trace.SpanKindInternal),
	tracing.Due: kind(trace.SpanKindInternal), tracing.Send: kind(trace.SpanKindProducer),
}

func kind(k trace.SpanKind) []trace.SpanStartOption {
	return slices.Clip([]trace.SpanStartOption{trace.WithSpanKind(k)})
}

var verbs = [...]string{tracing.Submit: "submit ", tracing.Attempt: "attempt ", tracing.Undo: "undo ", tracing.Due: "decide "}

// nameOf returns a span name of low cardinality, from names of workflows, transitions, consumers,
// sinks and routes.
func nameOf(s *tracing.Step) string {
	switch s.Kind {
	case tracing.Request:
		return s.Name + " " + s.Route
	case tracing.Consume:
		return "process " + s.Name
	case tracing.Send:
		return "send " + s.Name
	case tracing.Commit:
		return "COMMIT"
	}
	if s.Transition == "" {
		return "submit"
	}
	return verbs[s.Kind] + s.Workflow + "." + s.Transition
}

// attributesOf returns attributes of the semantic conventions and of Pawl. It omits path and query,
// which may contain personal data.
func attributesOf(s *tracing.Step) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 8)
	text := func(key, value string) {
		if value != "" {
			list = append(list, attribute.String(key, value))
		}
	}
	text("pawl.tenant", s.Tenant)
	text("pawl.workflow", s.Workflow)
	text("pawl.transition", s.Transition)
	if s.Instance != (uuid.UUID{}) {
		text("pawl.instance", s.Instance.String())
	}
	switch s.Kind {
	case tracing.Request:
		text("http.request.method", s.Name)
		text("http.route", s.Route)
	case tracing.Commit:
		text("db.system.name", "postgresql")
		text("db.operation.name", "COMMIT")
	case tracing.Consume:
		messaging(text, "process", s)
	case tracing.Send:
		messaging(text, "send", s)
		text("cloudevents.event_id", s.ID)
		text("cloudevents.event_type", s.Type)
	}
	switch {
	case s.Count == 0:
	case s.Kind == tracing.Attempt || s.Kind == tracing.Undo || s.Kind == tracing.Due:
		list = append(list, attribute.Int("pawl.attempt", s.Count))
	default:
		list = append(list, attribute.Int("pawl.commands", s.Count))
	}
	return list
}

func messaging(text func(key, value string), operation string, s *tracing.Step) {
	text("messaging.system", "pawl")
	text("messaging.operation.name", operation)
	text("messaging.operation.type", operation)
	text("messaging.destination.name", s.Name)
	text("messaging.message.id", s.ID)
}
