package opentelemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl/tracing"
)

var kinds = [...]trace.SpanKind{
	tracing.Request: trace.SpanKindServer, tracing.Submit: trace.SpanKindInternal, tracing.Consume: trace.SpanKindConsumer,
	tracing.Commit: trace.SpanKindClient, tracing.Attempt: trace.SpanKindInternal, tracing.Undo: trace.SpanKindInternal,
	tracing.Due: trace.SpanKindInternal, tracing.Send: trace.SpanKindProducer,
}

// verbs begin the names of spans about a transition.
var verbs = [...]string{tracing.Submit: "submit ", tracing.Attempt: "attempt ", tracing.Undo: "undo ", tracing.Due: "decide "}

// nameOf is one of few: the names that workflows, their transitions, consumers, sinks and routes have.
func nameOf(s *tracing.Step) string {
	switch s.Kind {
	case tracing.Request:
		return s.Name + " " + s.Route
	case tracing.Consume:
		return "process " + s.Name
	case tracing.Send:
		return "send " + s.Name
	case tracing.Commit:
		return "commit"
	}
	if s.Transition == "" {
		return "submit"
	}
	return verbs[s.Kind] + s.Workflow + "." + s.Transition
}

// attributesOf are those of the semantic conventions, and Pawl's own. The path and the query of a
// request are left out: they may have a number in them that is somebody's.
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
	text("pawl.instance", s.Instance)
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
