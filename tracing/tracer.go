package tracing

import (
	"context"

	"github.com/google/uuid"
)

// Tracer is told of the steps of Pawl's work. It is safe for concurrent use.
type Tracer interface {
	// Start begins a step: within the trace of its Parent, or else of ctx's span, or in one of its
	// own. The context that it returns is for what is done in the step, a workflow's own
	// code too.
	Start(ctx context.Context, s Step) (context.Context, Span)
}

// Span is a step that is under way.
type Span interface {
	// Context is where in the trace that is; "" where the step is not recorded, and then nothing
	// that comes of it is either.
	Context() Context
	// Link says that the step has to do with another one.
	Link(to Context)
	// End ends it. It is called once.
	End(Outcome)
}

// Step is what begins. Only what its kind says is set.
type Step struct {
	Kind   Kind
	Parent Context   // nowhere: ctx tells
	Links  []Context // of a Commit, the commands that it commits

	Tenant     string
	Workflow   string
	Transition string
	Instance   uuid.UUID // zero where that is not known yet
	Name       string    // of a Request its method; of a Consume the consumer, of a Send the sink
	Route      string    // of a Request, as http.ServeMux has it, without the method
	ID         string    // of a Consume that of the message, of a Send that of the event
	Type       string    // of a Send that of the event
	Count      int       // of an Attempt which one it is; of a Commit, and a Submit of many, how many commands
}

// Kind is what a step is, and so what it is called.
type Kind int

const (
	Request Kind = iota // a request over HTTP is served
	Submit              // a command, or many, from when they are ready until they are answered
	Consume             // the same of a message from outside
	Commit              // a transaction with many commands, each in the trace of its own
	Attempt             // an activity, until its outcome is committed
	Undo                // likewise, what takes its effect back
	Due                 // a timer or a scheduled command whose time has come
	Send                // an attempt to deliver an event to a sink
)

// Outcome is how a step ends.
type Outcome struct {
	Status   int    // of the answer as HTTP has it; 0: there is none
	Replayed bool   // it is an earlier attempt's answer
	Error    string // what kind of failure it is, one of few; "" for none
}

// None is the span of what is not traced.
var None Span = none{}

type none struct{}

func (none) Context() Context { return "" }
func (none) Link(Context)     {}
func (none) End(Outcome)      {}

// Start begins a step; with no tracer it does nothing.
func Start(ctx context.Context, t Tracer, s Step) (context.Context, Span) {
	if t == nil {
		return ctx, None
	}
	ctx, span := t.Start(ctx, s)
	return With(ctx, span), span
}

// spanKey is that of the newest recorded span in a context.
type spanKey struct{}

// With puts a span into a context, if it is recorded.
func With(ctx context.Context, s Span) context.Context {
	if s.Context() == "" {
		return ctx
	}
	return context.WithValue(ctx, spanKey{}, s)
}

// SpanOf is the span that With has put into a context, or None.
func SpanOf(ctx context.Context) Span {
	if s, ok := ctx.Value(spanKey{}).(Span); ok {
		return s
	}
	return None
}
