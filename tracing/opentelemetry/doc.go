// Package opentelemetry traces Pawl with OpenTelemetry:
//
//	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
//	s, err := pawl.Start(ctx, pawl.Config{Workflows: ..., Tracer: opentelemetry.Tracer(provider)})
//
// Names of spans have low cardinality and follow OpenTelemetry's semantic conventions for HTTP,
// messaging and databases:
//
//	POST /v1/…                 SERVER    a request, by its route
//	submit order.pay           INTERNAL  a command, until its result
//	process bank               CONSUMER  a message, until its result
//	COMMIT                     CLIENT    a transaction with many commands
//	attempt order.charge       INTERNAL  an activity, until its outcome is committed
//	undo order.charge          INTERNAL  the undo of an effect, until its outcome is committed
//	decide order.expire        INTERNAL  a timer or a scheduled command
//	send crm                   PRODUCER  an attempt to deliver an event to a sink
//
// All steps of an order are one trace except transactions. A transaction commits commands of many
// traces, so it is a separate trace, linked to each of its commands and vice versa. A sampler by
// trace id therefore decides about transactions independently; wrap it with package
// tracing/opentelemetry/sampler, which samples a transaction if one of its commands is sampled.
//
// A step only gets a span if it continues a sampled trace. Requests, commands and messages can also
// start a trace. Unsampled steps therefore store nothing, and timers and deliveries never start a
// trace. Attributes are set on sampled spans; samplers see name, kind and links.
//
// Callers can request sampling if the sampler respects remote parents, as OpenTelemetry's default
// does. [Public] ignores them.
package opentelemetry
