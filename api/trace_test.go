package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/tracing/opentelemetry"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// newTracedServer is a server, and the spans of its requests. Callers decide what is sampled.
func newTracedServer(t *testing.T) (*server, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	return newServer(t, func(c *api.Config) { c.Tracer, c.AccessLog = opentelemetry.Tracer(provider), true }), spans
}

func TestRequestJoinsCallersTrace(t *testing.T) {
	t.Parallel()
	s, spans := newTracedServer(t)
	s.get("/v1/workflows/parcel", "Traceparent", traceparent).want(t, 200)
	s.get("/v1/workflows/nothing", "Traceparent", traceparent).want(t, 404)
	await.Eventually(t, "two spans", func() bool { return len(spans.Ended()) == 2 })
	for i, status := range []string{"200", "404"} {
		span := spans.Ended()[i]
		var said []string
		for _, a := range span.Attributes() {
			said = append(said, string(a.Key)+"="+a.Value.String())
		}
		assert.Truef(t, span.Name() == "GET /v1/workflows/{workflow}" && span.Parent().SpanID().String() == traceparent[36:52] &&
			slices.Contains(said, "http.response.status_code="+status) && !strings.Contains(strings.Join(said, " "), "parcel"),
			"%s below %v: %q", span.Name(), span.Parent(), said)
	}
	await.Eventually(t, "the log names the trace", func() bool {
		return strings.Count(s.log.String(), "trace_id="+traceparent[3:35]) == 2
	})
}

// Invalid trace headers are ignored, and health checks and unknown paths are not traced.
func TestTrace_Ignored(t *testing.T) {
	t.Parallel()
	s, spans := newTracedServer(t)
	for _, headers := range [][]string{
		{"Traceparent", strings.ToUpper(traceparent)}, {"Traceparent", strings.Repeat(traceparent, 500)}, {"Traceparent", ""},
		{"Traceparent", traceparent, "Traceparent", traceparent}, {"Tracestate", "a=1"}, {"Traceparent", traceparent[:53] + "00"},
		{"Traceparent", traceparent + "-more"}, {"Baggage", "sampled=true"},
	} {
		s.get("/v1/workflows/parcel", headers...).want(t, 200)
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/nothing/here", "/wp-login.php"} {
		s.get(path, "Traceparent", traceparent)
	}
	s.get("/v1/workflows", "Traceparent", traceparent, "Tracestate", strings.Repeat("a", 5000)).want(t, 200)
	await.Eventually(t, "the last one is traced", func() bool { return len(spans.Ended()) > 0 })
	all := spans.Ended()
	assert.Truef(t, len(all) == 1 && all[0].Name() == "GET /v1/workflows" && all[0].SpanContext().TraceState().Len() == 0, "%v", all)
}
