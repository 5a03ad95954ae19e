package inflight

import (
	"cmp"
	"context"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/tracing"
	"github.com/pawlhq/pawl/transitions"
)

// trace begins the span of a command's attempt, if the command was asked in a trace that is
// sampled. The span is in both contexts: that of the attempt, and that of the commit.
func (r *Runner) trace(ctx, attempt context.Context, f *flight) (context.Context, context.Context, tracing.Span) {
	if r.config.Tracer == nil {
		return ctx, attempt, tracing.None
	}
	asked, err := f.Asked()
	if err != nil || asked.Trace == "" { // an error is told to who needs what was asked
		return ctx, attempt, tracing.None
	}
	kind := tracing.Attempt
	switch f.Phase {
	case transitions.Undoing:
		kind = tracing.Undo
	case transitions.Scheduled:
		kind = tracing.Due
	}
	attempt, span := tracing.Start(attempt, r.config.Tracer, tracing.Step{Kind: kind, Parent: asked.Trace, Tenant: f.Tenant,
		Workflow: f.Workflow, Transition: f.Transition, Instance: f.Instance, Count: f.Attempt})
	return tracing.With(ctx, span), attempt, span
}

// traced sets the span of a continuing command.
func traced(ctx context.Context, p *decide.Prepared) {
	p.Trace = cmp.Or(tracing.SpanOf(ctx).Context(), p.Trace)
}

// outcomeOf returns the outcome for the span of an attempt: the failure with which the command ends or is released.
func outcomeOf(ending *decide.Outcome, back *decide.Back) tracing.Outcome {
	switch {
	case back != nil && back.Stuck != "":
		return tracing.Outcome{Error: back.Stuck}
	case back != nil && back.Failed:
		return tracing.Outcome{Error: string(back.Status)}
	case ending != nil && ending.Failure != nil:
		return tracing.Outcome{Error: string(ending.Failure.Kind)}
	}
	return tracing.Outcome{}
}
