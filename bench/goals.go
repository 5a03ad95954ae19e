package bench

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// goal is what a run should reach: a figure of a scenario, as it is or as a part of
// another's in the same round.
type goal struct {
	of, than string // the scenarios' names; than is "" for the figure as it is
	figure   func(*sample) float64
	what     string // the figure, for the reader
	most     bool   // want is the most, else the least
	want     float64
}

func goals() []goal {
	return []goal{
		{submitMost, ceilingName, (*sample).rate, "rate", false, 0.75},
		{submitMost, leanMany, (*sample).rate, "rate", false, 6},
		{submitMost, leanMany, processorEach, "processor time", true, 1.0 / 7},
		{submitOne, floorOne, p50, "p50", true, 0.55},
		{createOne, floorOne, p50, "p50", true, 0.4},
		{awaitOne, submitOne, p50, "p50", true, 2.5},
		{submitMost, "", walEach, "bytes of WAL", true, 2000},
		{waitMany, "", (*sample).rate, "queries a second", true, 5},
		{pausedMany, "", (*sample).rate, "claims a second", true, 0},
		{behindMany, "", p99, "p99 of a poll, ms", true, 50},
		{followStream, submitMost, (*sample).rate, "rate", false, 0.85},
		{followFile, submitMost, (*sample).rate, "rate", false, 0.95},
		{migrateAmid, "", amidP99, "p99 / without", true, 2},
		{workBesideOne, workAlone, (*sample).rate, "rate", false, 0.9},
		{workBesideThree, workAlone, (*sample).rate, "rate", false, 0.9},
		{threeNodes, submitMost, (*sample).rate, "rate", false, 0.95},
		{besideHeld, submitMany, p99, "p99", true, 2},
		{restTokens, restMany, (*sample).rate, "rate", false, 0.9},
		{restKeys, restMany, (*sample).rate, "rate", false, 0.9},
		{heapLarge, "", heapShare, "heap / what is configured", true, 3},
		{heapHeld, "", heapShare, "heap / what is configured", true, 3},
		{tooMany, "", servedShare, "served / sustained", false, 0.9},
		{tooMany, "", refusedP99, "p99 of a refusal, ms", true, 50},
		{tooMany, "", untilNormal, "until normal, s", true, 2},
		{restTooMany, "", servedShare, "served / sustained", false, 0.9},
		{restTooMany, "", refusedP99, "p99 of a refusal, ms", true, 50},
		{restTooMany, "", untilNormal, "until normal, s", true, 2},
		{webhooks(10*manySubscribers, 30), "", lagP99, "lag p99, ms", true, 100},
		{subscribers(manySubscribers / 10), "", p99, "p99, ms", true, 10},
		{fullReplays, replayMost, (*sample).rate, "rate", false, 0.8},
		{halfPurging, halfRate, p99, "p99", true, 1.5},
	}
}

// amidP99 is the p99 latency during a migration, as a ratio to that without.
func amidP99(s *sample) float64 { return p99(s) / s.amid.without }

func heapShare(s *sample) float64 { return s.heap }

func walEach(s *sample) float64 { return float64(s.cost.wal) / float64(max(s.all, 1)) }

// processorEach is in microseconds; 0 where it cannot be seen.
func processorEach(s *sample) float64 {
	return max(0, float64(s.cost.processor)/float64(max(s.all, 1)))
}

// reached is the median of what a goal is about; false where it was not run.
func (r *report) reached(g goal) (float64, bool) {
	of := r.named(g.of)
	if g.than != "" || of == nil {
		return compare(of, r.named(g.than), g.figure)
	}
	return of.of(g.figure), true
}

// goals writes the goals of the run with the measured values. A missed goal is not an error: the reader judges it for the machine.
func (r *report) goals(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	header := "\ngoal\twanted\treached\t\n"
	for _, g := range goals() {
		got, ok := r.reached(g)
		if !ok {
			continue
		}
		what, wanted, verdict := g.of, "≥", "missed"
		if g.than != "" {
			what += " / " + g.than
		}
		if g.most {
			wanted = "≤"
		}
		if got == g.want || g.most == (got < g.want) {
			verdict = ""
		}
		fmt.Fprintf(w, "%s%s (%s)\t%s %.4g\t%.4g\t%s\n", header, what, g.what, wanted, g.want, got, verdict)
		header = ""
	}
	_ = w.Flush() // into memory
}
