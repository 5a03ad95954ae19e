package tracing

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStartWithoutTracer(t *testing.T) {
	ctx := t.Context()
	allocations := testing.AllocsPerRun(100, func() {
		inner, span := Start(ctx, nil, Step{Kind: Submit, Workflow: "order", Transition: "pay"})
		assert.True(t, inner == ctx && span.Context() == "" && SpanOf(inner) == None, "something is traced")
		span.Link(parent)
		span.End(Outcome{Error: "internal"})
	})
	assert.Truef(t, allocations == 0, "it allocates %v times", allocations)
}
