// Package tracing defines the traced steps of Pawl, independent of a tracing library; package
// tracing/opentelemetry maps them to OpenTelemetry. Without a Tracer nothing is traced or stored,
// at the cost of a comparison.
//
// A [Context] is a position in a trace, in the format of W3C Trace Context. Commands, commands in
// flight and their events contain it, so traces continue after a restart and on other nodes. It is
// not part of the request that an idempotency key identifies, nor of any hash.
// docs/internals/access.md explains why.
package tracing

import (
	"context"

	"github.com/google/uuid"
)

// Tracer traces the steps of Pawl. It must be safe for concurrent use.
type Tracer interface {
	// Start starts a step in the trace of its Parent, of ctx's span, or in a new one. The returned
	// context is used for the step's work, including the workflow's code.
	Start(ctx context.Context, s Step) (context.Context, Span)
}

// Span is a step in progress.
type Span interface {
	// Context returns the step's position in the trace, or "" if neither it nor its descendants are
	// recorded.
	Context() Context
	// Link links the step to another one.
	Link(to Context)
	// End ends the step. It is called once.
	End(Outcome)
}

// Step describes a step. Only the fields of its kind are set.
type Step struct {
	Kind   Kind
	Parent Context   // "": that of ctx
	Links  []Context // of a Commit: its commands

	Tenant     string
	Workflow   string
	Transition string
	Instance   uuid.UUID // zero if not known yet
	Name       string    // of a Request: method; of a Consume: consumer; of a Send: sink
	Route      string    // of a Request: pattern of http.ServeMux without the method
	ID         string    // of a Consume: of the message; of a Send: of the event
	Type       string    // of a Send: of the event
	Count      int       // of an Attempt: its number; of a Commit or a bulk Submit: number of commands
}

// Kind is the kind of a step, which determines its name.
type Kind int

const (
	Request Kind = iota // an HTTP request
	Submit              // one or many commands, until their results
	Consume             // a message, until its result
	Commit              // a transaction with many commands, each with its own trace
	Attempt             // an activity, until its outcome is committed
	Undo                // the undo of an effect, until its outcome is committed
	Due                 // a timer or a scheduled command
	Send                // an attempt to deliver an event to a sink
)

// Outcome is the outcome of a step.
type Outcome struct {
	Status   int    // HTTP status; 0: none
	Replayed bool   // the result is an earlier attempt's
	Error    string // kind of failure, of low cardinality; "" for none
}

// None is the span of an untraced step.
var None Span = none{}

type none struct{}

func (none) Context() Context { return "" }
func (none) Link(Context)     {}
func (none) End(Outcome)      {}

// Start starts a step. It is a no-op without a tracer.
func Start(ctx context.Context, t Tracer, s Step) (context.Context, Span) {
	if t == nil {
		return ctx, None
	}
	ctx, span := t.Start(ctx, s)
	return With(ctx, span), span
}

type spanKey struct{}

// With adds a span to a context, if it is recorded.
func With(ctx context.Context, s Span) context.Context {
	if s.Context() == "" {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// SpanOf returns the span added by With, or None.
func SpanOf(ctx context.Context) Span {
	if s, ok := ctx.Value(spanKey{}).(Span); ok {
		return s
	}
	return None
}
