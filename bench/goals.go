package bench

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// goal is a ratio that a run should reach.
type goal struct {
	text    string
	limit   float64
	atMost  bool // limit is the most that it may be, not the least
	measure func(r *report) (float64, bool)
}

func goals() []goal {
	return []goal{
		{"Submit, 256 callers: at least 7 × floor", 7, false, rateOver(submitMost, floorMany)},
		{"Submit, 256 callers: at least 0.7 × ceiling", 0.7, false, rateOverCeiling(submitMost)},
		{"SubmitMany: at least 0.8 × ceiling", 0.8, false, rateOverCeiling(submitBatches)},
		{"Submit, one hot instance: at least 5 × floor on one row", 5, false, rateOver(submitHot, floorRow)},
		{"a transition, 1 caller, p50: at most 0.6 × floor's", 0.6, true, p50Over(submitOne, floorOne)},
		{"a creation, 1 caller, p50: at most 0.45 × floor's", 0.45, true, p50Over(createOne, floorOne)},
		{"in flight, 64 callers: at least 1.2 × floor", 1.2, false, rateOver(awaitMany, floorMany)},
		{"in flight, 1 caller, p50: at most 3 ms", 3, true, p50ms(awaitOne)},
		{"Submit amid 100,000 in flight: at least 0.95 × without", 0.95, false, rateOver(submitAmid, submitMost)},
		{"REST, 64 connections: at least 2 × floor", 2, false, rateOver(restMany, floorMany)},
		{"REST bulk: at least 5 × floor", 5, false, rateOver(bulkMany, floorMany)},
	}
}

func rateOver(name, floor string) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) { return compare(r.named(name), r.named(floor), (*sample).rate) }
}

func rateOverCeiling(name string) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) { return compare(r.named(name), r.ceiling(), (*sample).rate) }
}

func p50Over(name, floor string) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) { return compare(r.named(name), r.named(floor), p50) }
}

// p50ms is the median latency of a scenario, in milliseconds.
func p50ms(name string) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		line := r.named(name)
		if line == nil {
			return 0, false
		}
		return float64(line.quantile(0.50)) / 1e6, true
	}
}

func (r *report) goals(b *strings.Builder) {
	b.WriteString("\nGoals\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, g := range goals() {
		v, ok := g.measure(r)
		verdict := "missed"
		switch {
		case !ok:
			verdict = "not run"
		case g.atMost && v <= g.limit || !g.atMost && v >= g.limit:
			verdict = "reached"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", verdict, g.text, orDash("%.2f")(v, ok))
	}
	_ = w.Flush() // into memory
}
