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
		{"Consume, 64 callers: at least 0.8 × Submit, 64 callers", 0.8, false, rateOver(consumeMany, submitMany)},
		{"in flight, 64 callers: at least 1.2 × floor", 1.2, false, rateOver(awaitMany, floorMany)},
		{"in flight, 1 caller, p50: at most 3 ms", 3, true, p50ms(awaitOne)},
		{"Submit amid 100,000 in flight: at least 0.95 × without", 0.95, false, rateOver(submitAmid, submitMost)},
		{"Submit through PgBouncer, 256 callers: at least 0.6 × direct", 0.6, false, rateOver(pooledMost, submitMost)},
		{"Submit through PgBouncer, 1 caller: at least 0.35 × direct", 0.35, false, rateOver(pooledOne, submitOne)},
		{"a backlog to a file: at least 1 × Submit, 256 callers", 1, false, rateOver(drainFile, submitMost)},
		{"a backlog to JetStream: at least 1 × Submit, 256 callers", 1, false, rateOver(drainStream, submitMost)},
		{"Submit, a file follows: at least 0.8 × without", 0.8, false, rateOver(followFile, submitMost)},
		{"Submit, JetStream follows: at least 0.8 × without", 0.8, false, rateOver(followStream, submitMost)},
		{"lag beside a dead sink, p99: at most 1.5 × without", 1.5, true, lagOver(besideDead, threeSinks)},
		{"REST, 64 connections: at least 2 × floor", 2, false, rateOver(restMany, floorMany)},
		{"REST bulk: at least 5 × floor", 5, false, rateOver(bulkMany, floorMany)},
	}
}

// largeGoals are those of a run on full tables.
func largeGoals() []goal {
	return []goal{
		{"Submit on full tables: at least 0.85 × on empty ones", 0.85, false, rateOver(fullMost, submitMost)},
		{"replays of old keys: at least 0.8 × on empty tables", 0.8, false, rateOver(fullReplays, replayMost)},
		{"a purge with nothing due, p99: at most 10 ms", 10, true, p99ms(nothingDue)},
		{"a purge beside Submit at half of its rate: its p99 at most 2 × without", 2, true, p99Over(halfPurging, halfRate)},
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

func p99Over(name, other string) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) { return compare(r.named(name), r.named(other), p99) }
}

// lagOver compares how long events took to reach the sinks.
func lagOver(name, other string) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		return compare(r.named(name), r.named(other), func(s *sample) float64 { return float64(s.relayed.lag.quantile(0.99)) })
	}
}

// p50ms is the median latency of a scenario, in milliseconds.
func p50ms(name string) func(*report) (float64, bool) { return quantileMs(name, 0.50) }

func p99ms(name string) func(*report) (float64, bool) { return quantileMs(name, 0.99) }

func quantileMs(name string, q float64) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		line := r.named(name)
		if line == nil {
			return 0, false
		}
		return float64(line.quantile(q)) / 1e6, true
	}
}

func (r *report) goals(b *strings.Builder) {
	b.WriteString("\nGoals\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	list := goals()
	if r.config.Large > 0 {
		list = largeGoals()
	}
	for _, g := range list {
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
