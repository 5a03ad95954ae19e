package opentelemetry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/tracing/opentelemetry"
	"github.com/pawlhq/pawl/tracing/opentelemetry/sampler"
)

// Contexts of a sampled and an unsampled caller.
const (
	theirs    = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// recorded returns a tracer and a recorder of its spans.
func recorded(s sdktrace.Sampler, options ...opentelemetry.Option) (tracing.Tracer, *tracetest.SpanRecorder) {
	r := tracetest.NewSpanRecorder()
	return opentelemetry.Tracer(sdktrace.NewTracerProvider(sdktrace.WithSampler(s), sdktrace.WithSpanProcessor(r)), options...), r
}

func parentBased() sdktrace.Sampler { return sdktrace.ParentBased(sdktrace.AlwaysSample()) }

// Dashboards depend on these names.
func TestNamesKindsAndAttributes(t *testing.T) {
	t.Parallel()
	of := tracing.Step{Tenant: "acme", Workflow: "order", Transition: "pay", Instance: uuid.UUID{15: 1}}
	const about = "pawl.tenant=acme pawl.workflow=order pawl.transition=pay pawl.instance=00000000-0000-0000-0000-000000000001"
	with := func(change func(*tracing.Step)) tracing.Step {
		s := of
		change(&s)
		return s
	}
	for _, tt := range []struct {
		step tracing.Step
		want string
	}{
		{tracing.Step{Kind: tracing.Request, Name: "GET", Route: "/v1/instances/{id}"},
			"GET /v1/instances/{id} server http.request.method=GET http.route=/v1/instances/{id}"},
		{with(func(s *tracing.Step) { s.Kind = tracing.Submit }), "submit order.pay internal " + about},
		{tracing.Step{Kind: tracing.Submit, Count: 3}, "submit internal pawl.commands=3"},
		{tracing.Step{Kind: tracing.Consume, Tenant: "acme", Name: "bank", ID: "m-1"}, "process bank consumer pawl.tenant=acme " +
			"messaging.system=pawl messaging.operation.name=process messaging.operation.type=process " +
			"messaging.destination.name=bank messaging.message.id=m-1"},
		{tracing.Step{Kind: tracing.Commit, Count: 2}, "COMMIT client db.system.name=postgresql db.operation.name=COMMIT pawl.commands=2"},
		{with(func(s *tracing.Step) { s.Kind, s.Count = tracing.Attempt, 2 }), "attempt order.pay internal " + about + " pawl.attempt=2"},
		{with(func(s *tracing.Step) { s.Kind, s.Count = tracing.Undo, 1 }), "undo order.pay internal " + about + " pawl.attempt=1"},
		{with(func(s *tracing.Step) { s.Kind, s.Count = tracing.Due, 1 }), "decide order.pay internal " + about + " pawl.attempt=1"},
		{with(func(s *tracing.Step) { s.Kind, s.Name, s.ID, s.Type = tracing.Send, "crm", "7-0", "order.pay" }),
			"send crm producer " + about + " messaging.system=pawl messaging.operation.name=send messaging.operation.type=send " +
				"messaging.destination.name=crm messaging.message.id=7-0 cloudevents.event_id=7-0 cloudevents.event_type=order.pay"},
	} {
		tracer, spans := recorded(parentBased())
		_, span := tracer.Start(t.Context(), tt.step)
		span.End(tracing.Outcome{})
		assert.Equal(t, tt.want, text(spans.Ended()[0]))
	}
}

func text(s sdktrace.ReadOnlySpan) string {
	words := []string{s.Name(), s.SpanKind().String()}
	for _, a := range s.Attributes() {
		words = append(words, string(a.Key)+"="+a.Value.String())
	}
	return strings.Join(words, " ")
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   tracing.Kind
		end    tracing.Outcome
		status codes.Code
		want   string
	}{
		{tracing.Request, tracing.Outcome{Status: 404}, codes.Unset, "http.response.status_code=404"},
		{tracing.Request, tracing.Outcome{Status: 503}, codes.Error, "http.response.status_code=503 error.type=503"},
		{tracing.Submit, tracing.Outcome{Status: 409, Replayed: true}, codes.Unset, "pawl.status=409 pawl.replayed=true"},
		{tracing.Submit, tracing.Outcome{Error: "overloaded"}, codes.Error, "error.type=overloaded"},
	} {
		tracer, spans := recorded(parentBased())
		_, span := tracer.Start(t.Context(), tracing.Step{Kind: tt.kind})
		span.End(tt.end)
		s := spans.Ended()[0]
		got := text(s)
		assert.Truef(t, strings.HasSuffix(got, tt.want) && s.Status().Code == tt.status, "%+v: got %s, %v", tt.end, got, s.Status())
	}
}

func TestStepContinuesParentTrace(t *testing.T) {
	t.Parallel()
	tracer, spans := recorded(parentBased())
	ctx, outer := tracer.Start(t.Context(), tracing.Step{Kind: tracing.Request, Parent: theirs + " congo=t61"})
	_, inner := tracer.Start(ctx, tracing.Step{Kind: tracing.Submit})
	_, later := tracer.Start(t.Context(), tracing.Step{Kind: tracing.Attempt, Parent: inner.Context()})
	for _, s := range []tracing.Span{later, inner, outer} {
		assert.Truef(t, strings.HasPrefix(string(s.Context()), theirs[:36]) && s.Context().Tracestate() == "congo=t61",
			"it is at %q", s.Context())
		s.End(tracing.Outcome{})
	}
	ended := spans.Ended()
	for i, parent := range []string{ended[1].SpanContext().SpanID().String(), ended[2].SpanContext().SpanID().String(), theirs[36:52]} {
		assert.Equalf(t, parent, ended[i].Parent().SpanID().String(), "the parent of %q", ended[i].Name())
	}
}

func TestUnsampledStepRecordsNothing(t *testing.T) {
	t.Parallel()
	tracer, spans := recorded(parentBased())
	ctx, request := tracer.Start(t.Context(), tracing.Step{Kind: tracing.Request, Parent: unsampled})
	_, inner := tracer.Start(ctx, tracing.Step{Kind: tracing.Submit})
	for _, s := range []tracing.Span{inner, request} {
		s.Link(theirs)
		s.End(tracing.Outcome{Status: 200})
		assert.Equal(t, tracing.Context(""), s.Context(), "it is at")
	}
	assert.Equal(t, 0, len(spans.Ended()), "spans")
}

// Callers of a public service cannot force sampling.
func TestPublicStartsNewTraces(t *testing.T) {
	t.Parallel()
	for _, kind := range []tracing.Kind{tracing.Request, tracing.Consume} {
		tracer, spans := recorded(parentBased(), opentelemetry.Public)
		_, span := tracer.Start(t.Context(), tracing.Step{Kind: kind, Parent: theirs})
		span.End(tracing.Outcome{})
		s := spans.Ended()[0]
		assert.Truef(t, !s.Parent().IsValid() && s.SpanContext().TraceID().String() != theirs[3:35] && linked(s, theirs),
			"parent %v, links %v", s.Parent(), s.Links())
		none, _ := recorded(sdktrace.ParentBased(sampler.Linked(sdktrace.NeverSample())), opentelemetry.Public)
		if _, span := none.Start(t.Context(), tracing.Step{Kind: kind, Parent: theirs}); span.Context() != "" {
			t.Error("they have decided that it is sampled")
		}
		_, span = tracer.Start(t.Context(), tracing.Step{Kind: tracing.Attempt, Parent: theirs})
		assert.Equal(t, theirs[3:35], span.Context().ID(), "an attempt does not go on the trace of its command")
	}
}

func linked(s sdktrace.ReadOnlySpan, to tracing.Context) bool {
	return slices.ContainsFunc(s.Links(), func(l sdktrace.Link) bool {
		return fmt.Sprintf("00-%s-%s-01", l.SpanContext.TraceID(), l.SpanContext.SpanID()) == to.Traceparent()
	})
}

func TestTransactionIsLinked(t *testing.T) {
	t.Parallel()
	tracer, spans := recorded(parentBased())
	ctx, command := tracer.Start(t.Context(), tracing.Step{Kind: tracing.Submit})
	_, commit := tracer.Start(ctx, tracing.Step{Kind: tracing.Commit, Links: []tracing.Context{command.Context(), theirs}, Count: 2})
	command.Link(commit.Context())
	commit.End(tracing.Outcome{})
	command.End(tracing.Outcome{})
	c, s := spans.Ended()[0], spans.Ended()[1]
	if c.Parent().IsValid() || len(c.Links()) != 2 || !linked(c, command.Context()) || !linked(c, theirs) || !linked(s, commit.Context()) {
		t.Errorf("parent %v, links %v; and back %v", c.Parent(), c.Links(), s.Links())
	}
}

func TestLinkedSampler(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step tracing.Step
		want bool
	}{
		"of a sampled command":   {tracing.Step{Kind: tracing.Commit, Links: []tracing.Context{unsampled, theirs}}, true},
		"of none":                {tracing.Step{Kind: tracing.Commit, Links: []tracing.Context{unsampled}}, false},
		"a request of its own":   {tracing.Step{Kind: tracing.Request}, false},
		"a request of a sampled": {tracing.Step{Kind: tracing.Request, Parent: theirs}, true},
	} {
		s := sdktrace.ParentBased(sampler.Linked(sdktrace.NeverSample()))
		tracer, _ := recorded(s)
		_, span := tracer.Start(t.Context(), tt.step)
		got := span.Context() != ""
		assert.Equalf(t, tt.want, got, "%s: sampled", name)
		assert.Contains(t, s.Description(), "root:Linked{AlwaysOffSampler}", "it is called")
	}
}

// Commands may contain arbitrary contexts.
func TestInvalidContextIsIgnored(t *testing.T) {
	for _, c := range []tracing.Context{"x", "00-0af7651916cd43dd8448eb211c80319c", "\x00", tracing.Context(strings.Repeat("z", 600))} {
		tracer, spans := recorded(parentBased())
		_, span := tracer.Start(t.Context(), tracing.Step{Kind: tracing.Submit, Parent: c, Links: []tracing.Context{c}})
		span.Link(c)
		span.End(tracing.Outcome{})
		got := spans.Ended()[0]
		assert.Truef(t, !got.Parent().IsValid() && len(got.Links()) == 0, "%q is %v, linked to %v", c, got.Parent(), got.Links())
	}
}
