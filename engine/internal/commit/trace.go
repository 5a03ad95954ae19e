package commit

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/tracing"
)

// trace begins the span of a transaction, if one of its commands is traced. It is linked to the
// spans of these, and they to it.
func (pipe *Pipeline) trace(ctx context.Context, ops []*op) tracing.Span {
	if pipe.config.Tracer == nil {
		return tracing.None
	}
	var links []tracing.Context
	var last tracing.Context
	for _, o := range ops {
		if o.p.Trace != "" && o.p.Trace != last { // a caller's many commands are in one span
			last = o.p.Trace
			links = append(links, last)
		}
	}
	if links == nil {
		return tracing.None
	}
	_, span := tracing.Start(ctx, pipe.config.Tracer, tracing.Step{Kind: tracing.Commit, Links: links, Count: len(ops)})
	if c := span.Context(); c != "" {
		var linked tracing.Span
		for _, o := range ops {
			if o.span != nil && o.span != linked {
				linked = o.span
				linked.Link(c)
			}
		}
	}
	return span
}

// committed is how such a span ends.
func committed(err error) tracing.Outcome {
	switch failed, ok := errors.AsType[*pgconn.PgError](err); {
	case err == nil:
		return tracing.Outcome{}
	case ok:
		return tracing.Outcome{Error: failed.Code}
	}
	return tracing.Outcome{Error: "_OTHER"}
}
