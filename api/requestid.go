package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/tracing"
)

// headerRequestID names a request, for those who look for it in several logs.
const headerRequestID = "X-Request-Id"

// maxRequestID is the longest name that is taken from a caller, in bytes.
const maxRequestID = 128

// requestIDKey is that of the name in a context.
type requestIDKey struct{}

// identified returns the request with an id, which the answer has too: the caller's, if that can stand in any log as one word of printable
// ASCII, otherwise a new UUID, version 7.
func identified(w http.ResponseWriter, r *http.Request) *http.Request {
	var id string
	if given := r.Header[headerRequestID]; len(given) == 1 {
		id = given[0]
	}
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }
	if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, odd) {
		id = uuid.Must(uuid.NewV7()).String()
	}
	w.Header().Set(headerRequestID, id)
	return r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
}

// logHandler adds the name of the request to each line that is logged for one, and its trace.
type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, line slog.Record) error {
	if id, ok := ctx.Value(requestIDKey{}).(string); ok {
		line = line.Clone()
		line.AddAttrs(slog.String("request_id", id))
		if trace := tracing.SpanOf(ctx).Context(); trace != "" {
			line.AddAttrs(slog.String("trace_id", trace.ID()))
		}
	}
	return h.Handler.Handle(ctx, line)
}

func (h logHandler) WithAttrs(all []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(all)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// logAccess logs an answered request, without its path and query: the path can contain an instance's number, and requests are counted by
// the pattern of the route.
func (a *API) logAccess(w *answerWriter, r *http.Request, began time.Time) {
	level := slog.LevelDebug
	watched := slices.Contains([]string{"/healthz", "/readyz", "/metrics"}, r.URL.Path)
	if a.cfg.AccessLog && !(watched && a.cfg.AccessLogSkipsHealth) {
		level = slog.LevelInfo
	}
	if !a.log.Enabled(r.Context(), level) {
		return
	}
	a.log.LogAttrs(r.Context(), level, "api: request", slog.String("method", r.Method), slog.String("route", r.Pattern),
		slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("took", time.Since(began)),
		slog.String("tenant", w.caller.Tenant), slog.String("actor", w.caller.Actor), slog.String("remote", r.RemoteAddr),
		slog.String("protocol", r.Proto))
}

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
