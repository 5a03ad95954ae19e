package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/tracing/opentelemetry"
	"github.com/pawlhq/pawl/tracing/opentelemetry/sampler"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Traces that somebody else has begun.
const (
	sampledTrace   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampledTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// tracedBy gives an engine a tracer.
func tracedBy(spans *tracetest.InMemoryExporter) func(*engine.Config) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler.Linked(sdktrace.NeverSample()))))
	return func(c *engine.Config) { c.Tracer = opentelemetry.Tracer(provider) }
}

// named waits for a span that has ended.
func named(t *testing.T, spans *tracetest.InMemoryExporter, name string) (found tracetest.SpanStub) {
	t.Helper()
	eventually(t, "the span "+name, func() bool {
		for _, s := range spans.GetSpans() {
			if s.Name == name {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// storedTraces are those of the log's events, in order; "" for none.
func storedTraces(t *testing.T, pool *pgxpool.Pool) (list []string) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(),
		"SELECT array_agg(coalesce(trace, '') ORDER BY position, ordinal) FROM pawl.outbox").Scan(&list))
	return list
}

// The node that has accepted a command is gone; the one that works on it is in the same trace.
func TestATraceGoesOnOnAnotherNode(t *testing.T) {
	t.Parallel()
	pool, spans := database(t), tracetest.NewInMemoryExporter()
	inActivity := make(chan trace.SpanContext, 1)
	w := with(parcels(func(ctx context.Context, _ *workflow.Attempt) (track, error) {
		inActivity <- trace.SpanContextFromContext(ctx)
		return track{Number: "7"}, nil
	}))
	first := newEngine(t, pool, w, tracedBy(spans), func(c *engine.Config) { c.InFlight.Workers = -1 })
	r, err := first.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	require.NoError(t, err)
	accepted, err := first.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance,
		Options: transitions.Options{Trace: sampledTrace + " congo=t61"}})
	require.Truef(t, err == nil && accepted.InFlight(), "%+v, %v", accepted, err)
	submit := named(t, spans, "submit parcel.send")
	first.Stop(t.Context())
	second := newEngine(t, pool, w, tracedBy(spans))
	require.NoError(t, errOf(second.Await(t.Context(), transitions.Ref{Scope: accepted.Record.Scope, Key: "2"})))
	attempt := named(t, spans, "attempt parcel.send")
	assert.Truef(t, submit.Parent.SpanID().String() == sampledTrace[36:52] && attempt.Parent.SpanID() == submit.SpanContext.SpanID() &&
		attempt.SpanContext.TraceID().String() == sampledTrace[3:35] && attempt.SpanContext.TraceState().String() == "congo=t61",
		"submit below %v, attempt below %v", submit.Parent, attempt.Parent)
	got := <-inActivity
	assert.Equalf(t, attempt.SpanContext.SpanID(), got.SpanID(), "the activity is in %v, not in %v", got, attempt.SpanContext)
	at := func(s trace.SpanContext) string { return fmt.Sprintf("00-%s-%s-01 congo=t61", s.TraceID(), s.SpanID()) }
	want := []string{"", at(submit.SpanContext), at(attempt.SpanContext)}
	if got := storedTraces(t, pool); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the events have %q, not %q", got, want)
	}
}

// Without sampling or without a tracer no trace is stored.
func TestATraceIsKeptOnlyWhereItIsSampled(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*engine.Config){"nobody traces": func(*engine.Config) {},
		"it is not sampled": tracedBy(tracetest.NewInMemoryExporter())} {
		pool, e := started(t, with(parcels(nil)), change, func(c *engine.Config) { c.InFlight.Workers = -1 })
		given := tracing.Context(unsampledTrace)
		if name == "nobody traces" {
			given = sampledTrace
		}
		r, err := e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1",
			Options: transitions.Options{Trace: given}})
		require.NoError(t, err)
		for _, reply := range e.SubmitMany(t.Context(), []transitions.Command{
			{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance, Options: transitions.Options{Trace: given}}}) {
			require.NoError(t, reply.Err)
		}
		var requests string
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT coalesce(string_agg(request::text, ' '), '') FROM pawl.command").Scan(&requests))
		got := storedTraces(t, pool)
		assert.Truef(t, strings.Join(got, "") == "" && !strings.Contains(requests, "trace"),
			"%s: the events have %q, the requests are %s", name, got, requests)
	}
}

// A retry in another trace is the same request.
func TestATraceIsNoPartOfTheRequest(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	e := newEngine(t, database(t), tracedBy(spans))
	c := transitions.Command{Workflow: "loan", Transition: "apply", Key: "1",
		Payload: []byte(`{"number":"L-1","amount":5}`), Options: transitions.Options{Trace: sampledTrace}}
	first, err := e.Submit(t.Context(), c)
	require.NoError(t, err)
	c.Trace = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01"
	second, err := e.Submit(t.Context(), c)
	assert.Truef(t, err == nil && second.Replayed && string(second.Body) == string(first.Body), "%+v, %v; before %s", second, err, first.Body)
}

// Many callers have traces of their own: their common transaction is linked to each of them.
func TestATransactionIsLinkedToItsCommands(t *testing.T) {
	t.Parallel()
	const callers = 50
	spans := tracetest.NewInMemoryExporter()
	e := newEngine(t, database(t), tracedBy(spans))
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			assert.NoError(t, errOf(e.Submit(t.Context(), transitions.Command{Workflow: "loan", Transition: "apply", Key: fmt.Sprint(i),
				Payload: fmt.Appendf(nil, `{"number":"L-%d","amount":5}`, i),
				Options: transitions.Options{Trace: tracing.Context(fmt.Sprintf("00-%032x-%016x-01", i+1, i+1))}})))
		})
	}
	all.Wait()
	linked := map[trace.SpanID]bool{}
	eventually(t, "all of them are linked by transactions", func() bool {
		for _, s := range spans.GetSpans() {
			for _, l := range s.Links {
				if s.Name == "COMMIT" {
					linked[l.SpanContext.SpanID()] = true
				}
			}
		}
		return len(linked) >= callers
	})
	for _, s := range spans.GetSpans() {
		switch {
		case s.Name == "COMMIT" && s.Parent.IsValid():
			t.Error("a transaction is somebody's child")
		case strings.HasPrefix(s.Name, "submit") && (!linked[s.SpanContext.SpanID()] || len(s.Links) == 0):
			t.Errorf("the command of %s and its transaction are not linked", s.SpanContext.TraceID())
		}
	}
}
