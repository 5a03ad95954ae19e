package api

import (
	"net/http"
	"strings"

	"github.com/pawlhq/pawl/tracing"
)

// The headers of W3C Trace Context.
const (
	headerTraceparent = "Traceparent"
	headerTracestate  = "Tracestate"
)

// trace begins the span of a request, in the trace that its headers name. Unknown routes have none, so that clients cannot invent names,
// and neither have health checks.
func (a *API) trace(r *http.Request) (*http.Request, tracing.Span) {
	if a.cfg.Tracer == nil || !strings.HasPrefix(r.URL.Path, "/v1/") {
		return r, tracing.None
	}
	_, pattern := a.mux.Handler(r)
	_, route, found := strings.Cut(pattern, " ")
	if !found {
		return r, tracing.None
	}
	ctx, span := tracing.Start(r.Context(), a.cfg.Tracer, tracing.Step{Kind: tracing.Request, Name: r.Method, Route: route,
		Parent: tracing.Of(r.Header[headerTraceparent], r.Header[headerTracestate])})
	return r.WithContext(ctx), span
}
