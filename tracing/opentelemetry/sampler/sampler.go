// Package sampler samples a transaction if one of its commands is sampled.
package sampler

import (
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// Linked returns a sampler for root spans that samples a span with a link to a sampled one, and
// leaves others to next:
//
//	trace.ParentBased(sampler.Linked(trace.TraceIDRatioBased(0.01)))
//
// It only considers spans of kind CLIENT, as transactions have. Otherwise callers could decide with
// [opentelemetry.Public], which links requests to the caller's span.
//
// [opentelemetry.Public]: https://pkg.go.dev/github.com/pawlhq/pawl/tracing/opentelemetry#Public
func Linked(next trace.Sampler) trace.Sampler { return linked{next} }

type linked struct{ next trace.Sampler }

// ShouldSample implements [trace.Sampler].
func (l linked) ShouldSample(p trace.SamplingParameters) trace.SamplingResult {
	if p.Kind == api.SpanKindClient {
		for _, link := range p.Links {
			if link.SpanContext.IsSampled() {
				return trace.SamplingResult{Decision: trace.RecordAndSample}
			}
		}
	}
	return l.next.ShouldSample(p)
}

// Description implements [trace.Sampler].
func (l linked) Description() string { return "Linked{" + l.next.Description() + "}" }
