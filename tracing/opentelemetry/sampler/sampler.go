// Package sampler samples a transaction where one of its commands is sampled.
package sampler

import (
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// Linked samples a span without a parent that is linked to one which is sampled, and leaves
// all others to next. It goes where a root's sampler goes:
//
//	trace.ParentBased(sampler.Linked(trace.TraceIDRatioBased(0.01)))
//
// With [opentelemetry.Public] it would let callers decide: a request is linked to its caller's then, so only
// spans of the kind that transactions have, CLIENT, are looked at.
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
