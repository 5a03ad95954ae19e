package bench

import (
	"slices"
	"time"
)

// median of an odd number is the one in the middle, of an even number the mean
// of the two. There must be at least one.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func (r *result) over(value func(*sample) float64) []float64 {
	out := make([]float64, len(r.samples))
	for i, s := range r.samples {
		out[i] = value(s)
	}
	return out
}

func (r *result) rates() []float64 { return r.over((*sample).rate) }

func (r *result) quantile(q float64) time.Duration {
	return time.Duration(median(r.over(func(s *sample) float64 { return float64(s.latency.quantile(q)) })))
}

// perCommand is the median of a cost for each command; false where it was not
// counted.
func (r *result) perCommand(of func(cost) int64) (float64, bool) {
	for _, s := range r.samples {
		if of(s.cost) < 0 || s.all == 0 {
			return 0, false
		}
	}
	return median(r.over(func(s *sample) float64 { return float64(of(s.cost)) / float64(s.all) })), true
}

// compare is the median, over the rounds, of the ratio of two values that were
// measured in the same round. One that runs once does so in the first.
func compare(a, b *result, value func(*sample) float64) (float64, bool) {
	if a == nil || b == nil {
		return 0, false
	}
	x, y := a.over(value), b.over(value)
	ratios := make([]float64, min(len(x), len(y)))
	for i := range ratios {
		if y[i] == 0 {
			return 0, false
		}
		ratios[i] = x[i] / y[i]
	}
	return median(ratios), true
}

func p50(s *sample) float64 { return float64(s.latency.quantile(0.50)) }

func p99(s *sample) float64 { return float64(s.latency.quantile(0.99)) }
