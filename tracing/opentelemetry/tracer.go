package opentelemetry

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl/tracing"
)

// Name is the name of the instrumentation scope.
const Name = "github.com/pawlhq/pawl"

// Option configures a Tracer.
type Option func(*tracer)

// Public starts a new trace for each HTTP request and each message, linked to the caller's, so that
// callers cannot force sampling. Use it for services that untrusted callers can reach.
func Public(t *tracer) { t.public = true }

// Tracer returns a Tracer for Pawl that creates spans with a provider, such as the SDK's.
func Tracer(p trace.TracerProvider, options ...Option) tracing.Tracer {
	t := &tracer{spans: p.Tracer(Name)}
	for _, o := range options {
		o(t)
	}
	return t
}

type tracer struct {
	spans  trace.Tracer
	public bool
}

// Start implements [tracing.Tracer].
func (t *tracer) Start(ctx context.Context, s tracing.Step) (context.Context, tracing.Span) {
	options := kinds[s.Kind]
	parent := spanContext(s.Parent)
	switch {
	case s.Kind == tracing.Commit || t.public && parent.IsValid() && (s.Kind == tracing.Request || s.Kind == tracing.Consume):
		options = append(options, trace.WithNewRoot())
		if links := linksTo(s.Links, parent); links != nil {
			options = append(options, trace.WithLinks(links...))
		}
	case parent.IsValid():
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, otel := t.spans.Start(ctx, nameOf(&s), options...)
	switch {
	case otel.SpanContext().IsSampled():
	case otel.IsRecording():
		return ctx, unsampled{otel}
	default:
		return ctx, tracing.None
	}
	otel.SetAttributes(attributesOf(&s)...)
	return ctx, &span{otel: otel, kind: s.Kind, context: contextOf(otel.SpanContext())}
}

// linksTo returns links to the contexts, and optionally one more.
func linksTo(places []tracing.Context, more trace.SpanContext) (links []trace.Link) {
	for _, place := range places {
		if c := spanContext(place); c.IsValid() {
			links = append(links, trace.Link{SpanContext: c})
		}
	}
	if more.IsValid() {
		links = append(links, trace.Link{SpanContext: more})
	}
	return links
}

// unsampled is a recorded span for processors of the program; it has no descendants.
type unsampled struct{ otel trace.Span }

func (unsampled) Context() tracing.Context { return "" }
func (unsampled) Link(tracing.Context)     {}
func (s unsampled) End(tracing.Outcome)    { s.otel.End() }

type span struct {
	otel    trace.Span
	kind    tracing.Kind
	context tracing.Context
}

// Context implements [tracing.Span].
func (s *span) Context() tracing.Context { return s.context }

// Link implements [tracing.Span].
func (s *span) Link(to tracing.Context) {
	if c := spanContext(to); c.IsValid() {
		s.otel.AddLink(trace.Link{SpanContext: c})
	}
}

// End implements [tracing.Span].
func (s *span) End(o tracing.Outcome) {
	switch {
	case o.Status == 0:
	case s.kind != tracing.Request:
		s.otel.SetAttributes(attribute.Int("pawl.status", o.Status))
	default:
		s.otel.SetAttributes(attribute.Int("http.response.status_code", o.Status))
		if o.Status >= 500 {
			o.Error = strconv.Itoa(o.Status)
		}
	}
	if o.Replayed {
		s.otel.SetAttributes(attribute.Bool("pawl.replayed", true))
	}
	if o.Error != "" {
		s.otel.SetAttributes(attribute.String("error.type", o.Error))
		s.otel.SetStatus(codes.Error, "")
	}
	s.otel.End()
}

// spanContext returns a context as a remote span context of OpenTelemetry.
func spanContext(c tracing.Context) trace.SpanContext {
	parent := c.Traceparent()
	if len(parent) < len("00-")+32+len("-")+16 { // empty or invalid
		return trace.SpanContext{}
	}
	var config trace.SpanContextConfig
	var errTrace, errSpan error
	config.TraceID, errTrace = trace.TraceIDFromHex(parent[3:35])
	config.SpanID, errSpan = trace.SpanIDFromHex(parent[36:52])
	if errTrace != nil || errSpan != nil {
		return trace.SpanContext{}
	}
	if c.Sampled() {
		config.TraceFlags = trace.FlagsSampled
	}
	if state, err := trace.ParseTraceState(c.Tracestate()); err == nil {
		config.TraceState = state
	}
	config.Remote = true
	return trace.NewSpanContext(config)
}

func contextOf(c trace.SpanContext) tracing.Context {
	parent := "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + (c.TraceFlags() & trace.FlagsSampled).String()
	return tracing.Of([]string{parent}, []string{c.TraceState().String()})
}
