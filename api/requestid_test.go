package api_test

import (
	"bufio"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/tracing/opentelemetry"
	"github.com/pawlhq/pawl/workflow"
)

const requestID = "X-Request-Id"

func TestRequestID(t *testing.T) {
	s := newServer(t)
	for given, taken := range map[string]bool{
		"r-1": true, "0af7651916cd43dd8448eb211c80319c/b7ad": true, strings.Repeat("x", 128): true,
		"": false, "two words": false, `quo"ted`: false, `back\slash`: false, "wörter": false, strings.Repeat("x", 129): false, "a\tb": false,
	} {
		got := s.get("/healthz", requestID, given).header.Get(requestID)
		id, err := uuid.Parse(got)
		made := err == nil && id.Version() == 7
		assert.Truef(t, (!taken || got == given) && (taken || made), "%q is called %q", given, got)
	}
	got := s.get("/healthz", requestID, "a", requestID, "b").header.Values(requestID)
	assert.Truef(t, len(got) == 1 && got[0] != "a" && got[0] != "b", "two names: %q", got)
	if a, b := s.get("/healthz").header.Get(requestID), s.get("/healthz").header.Get(requestID); a == b || a == "" {
		t.Errorf("%q and %q", a, b)
	}
}

// The one line of the log with a text.
func line(t *testing.T, s *server, fragments ...string) string {
	t.Helper()
	var found []string
	for all := bufio.NewScanner(strings.NewReader(s.log.String())); all.Scan(); {
		has := true
		for _, f := range fragments {
			has = has && strings.Contains(all.Text(), f)
		}
		if has {
			found = append(found, all.Text())
		}
	}
	require.Lenf(t, found, 1, "lines with %q", fragments)
	return found[0]
}

func TestAccessLog(t *testing.T) {
	s := newServer(t, func(c *api.Config) {
		c.AccessLog = true
		c.Routes = map[string]http.Handler{"GET /own/{thing}": http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			w.WriteHeader(204)
		})}
	})
	id := s.packed("1")
	s.get("/v1/instances/"+id.String()+"?at=2030-01-01T00:00:00Z", requestID, "r-1", "Pawl-Tenant", "acme", "Pawl-Actor", "ann").
		wantProblem(t, 404, workflow.InstanceNotFound)
	s.get("/own/secret?token=hidden", requestID, "r-2").want(t, 204)
	s.get("/nothing/secret?token=hidden", requestID, "r-3").want(t, 404)
	_ = s.dial(requestID, "r-4").ws.Close()
	await.Eventually(t, "the stream has ended", func() bool { return strings.Contains(s.log.String(), "request_id=r-4") })
	for id, want := range map[string][]string{
		"r-1": {`route="GET /v1/instances/{id}"`, "status=404", "tenant=acme", "actor=ann", "bytes=", "took=", "remote=127.0.0.1:", "level=INFO"},
		"r-2": {`route="GET /own/{thing}"`, "status=204"},
		"r-3": {`route=""`, "status=404"},
		"r-4": {`route="GET /v1/stream"`, "status=101", "tenant=default"},
	} {
		got := line(t, s, "api: request\"", "request_id="+id)
		for _, w := range want {
			assert.Contains(t, got, w, "no in")
		}
	}
	if text := s.log.String(); strings.Contains(text, "hidden") || strings.Contains(text, "secret") || strings.Contains(text, id.String()) {
		t.Errorf("more is logged than should be:\n%s", text)
	}
}

func TestSecurityHeaders(t *testing.T) {
	s := newServer(t)
	id := s.packed("1").String()
	for path, policy := range map[string]string{
		"/healthz": "", "/v1/workflows": "", "/v1/instances/" + id: "", "/v1/nothing": "", "/metrics": "", "/v1/commands": "",
		"/v1/workflows/parcel/diagram": "style-src", "/v1/workflows/nothing/diagram": "",
	} {
		h := s.get(path).header
		assert.Truef(t, h.Get("X-Content-Type-Options") == "nosniff" && h.Get("Referrer-Policy") == "no-referrer" &&
			strings.HasSuffix(h.Get("Cache-Control"), "no-cache"),
			"%s: %v", path, h)
		got := h.Get("Content-Security-Policy")
		assert.Truef(t, strings.HasPrefix(got, "default-src 'none'; ") && strings.HasSuffix(got, "frame-ancestors 'none'") &&
			strings.Contains(got, policy) && (policy != "" || !strings.Contains(got, "style-src")),
			"%s: %q", path, got)
	}
}

func TestAccessLogSkipsHealth(t *testing.T) {
	for _, skips := range []bool{false, true} {
		s := newServer(t, func(c *api.Config) { c.AccessLog, c.AccessLogSkipsHealth = true, skips })
		for _, path := range []string{"/healthz", "/readyz", "/v1/workflows"} {
			s.get(path, requestID, "at"+strings.ReplaceAll(path, "/", "-")).want(t, 200)
			logged := false
			for line := range strings.Lines(s.log.String()) {
				logged = logged || strings.Contains(line, "level=INFO") && strings.Contains(line, "request_id=at"+strings.ReplaceAll(path, "/", "-"))
			}
			want := !skips || path == "/v1/workflows"
			assert.Equalf(t, want, logged, "%s is logged", path)
		}
	}
}

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
