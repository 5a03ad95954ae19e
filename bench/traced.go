package bench

import (
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/tracing/opentelemetry"
)

// submittingTraced is submitting of an engine with a tracer. What is sampled is made and thrown away: to export it is
// another program's cost.
func submittingTraced(name, floor string, n int, sampler sdktrace.Sampler) *scenario {
	tracer := opentelemetry.Tracer(sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler)))
	return &scenario{name: name, floor: floor,
		open: onEngineWith(engine.Config{Tracer: tracer}, n, func(e *env, eng *engine.Engine, i int) caller {
			return submitter(eng, flips(e, i, n), false)
		})}
}
