// Package opentelemetry traces Pawl with OpenTelemetry:
//
//	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
//	s, err := pawl.Start(ctx, pawl.Config{Workflows: ..., Tracer: opentelemetry.Tracer(provider)})
//
// Spans have few names, by OpenTelemetry's semantic conventions for HTTP, messaging and databases:
//
//	POST /v1/…                 SERVER    a request, by its route
//	submit order.pay           INTERNAL  a command, until it is answered
//	process bank               CONSUMER  a message from outside, until it is answered
//	COMMIT                     CLIENT    a transaction with many commands
//	attempt order.charge       INTERNAL  an activity, until its outcome is committed
//	undo order.charge          INTERNAL  the same of what takes its effect back
//	decide order.expire        INTERNAL  a timer or a scheduled command
//	send crm                   PRODUCER  an attempt to deliver an event to a sink
//
// All of an order is one trace but for the transactions. One of them commits the commands of many
// traces, so it is nobody's child: it is a trace of its own, linked to each of its commands, and
// each of them to it. A sampler that decides by the trace's id would therefore decide on transactions by
// themselves; wrap it with package tracing/opentelemetry/sampler, which samples a transaction where one of its commands is.
//
// A step is a span only where it goes on a trace that is sampled, but for requests, commands and
// messages, which may begin one. So of what is not sampled nothing is stored, and no timer or
// delivery begins a trace that nobody asked for. Attributes are set when a span is sampled; a
// sampler sees its name, its kind and its links.
//
// Who may send requests can ask for their traces to be sampled, if the sampler believes a parent of
// elsewhere, as OpenTelemetry's default does. [Public] does not believe them.
package opentelemetry
