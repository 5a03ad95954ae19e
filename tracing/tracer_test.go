package tracing

import "testing"

func TestStartWithoutTracer(t *testing.T) {
	ctx := t.Context()
	allocations := testing.AllocsPerRun(100, func() {
		inner, span := Start(ctx, nil, Step{Kind: Submit, Workflow: "order", Transition: "pay"})
		if inner != ctx || span.Context() != "" || SpanOf(inner) != None {
			t.Error("something is traced")
		}
		span.Link(parent)
		span.End(Outcome{Error: "internal"})
	})
	if allocations != 0 {
		t.Errorf("it allocates %v times", allocations)
	}
}
