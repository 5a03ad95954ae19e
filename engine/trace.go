package engine

import (
	"context"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// trace begins the span of a command that is ready, and so of one of few transitions. The
// command is then where that span is, or nowhere.
func (e *Engine) trace(ctx context.Context, p *decide.Prepared) (context.Context, tracing.Span) {
	if e.config.Tracer == nil {
		p.Trace = ""
		return ctx, tracing.None
	}
	s := tracing.Step{Kind: tracing.Submit, Parent: p.Trace, Tenant: p.Tenant, Workflow: p.Workflow, Transition: p.Transition}
	if !p.Creates {
		s.Instance = p.Instance
	}
	ctx, span := tracing.Start(ctx, e.config.Tracer, s)
	p.Trace = span.Context()
	return ctx, span
}

// traceMessage begins the span of a message. Only the names of consumers that there are become one of a span.
func (e *Engine) traceMessage(ctx context.Context, m *transitions.Message) (context.Context, tracing.Span) {
	if e.config.Tracer == nil || e.registry.Routes()[m.Consumer] == nil {
		return ctx, tracing.None
	}
	return tracing.Start(ctx, e.config.Tracer, tracing.Step{Kind: tracing.Consume, Parent: m.Trace,
		Tenant: m.Tenant, Name: m.Consumer, ID: m.ID})
}

// traceMany begins the span of many commands, which are all there.
func (e *Engine) traceMany(ctx context.Context, commands int) (context.Context, tracing.Span) {
	return tracing.Start(ctx, e.config.Tracer, tracing.Step{Kind: tracing.Submit, Count: commands})
}

// outcomeOf is how the span of a command ends. A refusal is an answer, and no failure.
func outcomeOf(r transitions.Receipt, err error) tracing.Outcome {
	if err != nil {
		return tracing.Outcome{Error: string(workflow.CodeOf(err))}
	}
	return tracing.Outcome{Status: r.Status, Replayed: r.Replayed}
}
