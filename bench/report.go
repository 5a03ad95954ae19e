package bench

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// result is what a scenario has come to, round by round.
type result struct {
	scenario *scenario
	samples  []*sample
}

// over is a figure of every round.
func (r *result) over(value func(*sample) float64) []float64 {
	out := make([]float64, len(r.samples))
	for i, s := range r.samples {
		out[i] = value(s)
	}
	return out
}

// of is the median of a figure.
func (r *result) of(value func(*sample) float64) float64 { return median(r.over(value)) }

// perCommand is the median of a cost for each command; false where it was not
// counted.
func (r *result) perCommand(of func(counters) int64) (float64, bool) {
	for _, s := range r.samples {
		if of(s.cost) < 0 || s.all == 0 {
			return 0, false
		}
	}
	return r.of(func(s *sample) float64 { return float64(of(s.cost)) / float64(s.all) }), true
}

// median of an odd number is the one in the middle, of an even number the mean
// of the two. There must be at least one.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
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

// report is what a run has come to.
type report struct {
	config      Config
	about       about
	results     []*result
	took        time.Duration
	checkpoints bool
}

// tableNotes explain the table to somebody who has not read the program.
const tableNotes = `
rate: commands a second, the median of the rounds (least–most). p50, p99: of one call, so of a whole batch for SubmitMany and bulk.
stmts, tx, WAL B: statements (BEGIN and COMMIT count), transactions and bytes of write-ahead log, for each command.
× floor: against the floor with 16 connections; one caller against the floor with one; one instance against the floor on one row.
× ceiling: against the best of the ceilings that only write. Ratios are the medians of the rounds' own ratios.
Every round's rows were counted: what is claimed above is in the tables.
`

// largeNotes are tableNotes for a run on full tables.
const largeNotes = `
rate: commands a second, the median of the rounds (least–most). p50, p99: of one call; at half of the rate, from when the call was due.
stmts, tx, WAL B: statements (BEGIN and COMMIT count), transactions and bytes of write-ahead log, for each command.
× same: against the same on empty tables; with a purge, against the same without. Ratios are the medians of the rounds' own ratios.
Callers have 10,240 orders of their own, placed since the checkpoint. "Any instance" is any of the loaded ones: most commands find
pages that nobody has changed since the checkpoint, which go to the log in full; see WAL B. "Old keys" are any of the loaded ones.
`

const streamNotes = `
p50, p99: from the decision of a transition (so with its commit) to the moment that a subscriber has its event. Lost, out of
order and cut off are sums over all subscribers and rounds; lost is what had not come long after the last commit.
`

// peersNote is for scale; none of it was measured by this run.
const peersNote = `
For scale, measured elsewhere on two cores: a floor of about 3,400 a second; with 64 callers that submit and wait for the answer,
DBOS 1,850, River 1,300, go-workflows 290, Temporal 230. River's own bulk benchmark does 21,000 to 29,000 no-op jobs a second.
`

func (r *report) write(out io.Writer) error {
	var b strings.Builder
	r.header(&b)
	r.table(&b)
	r.sinks(&b)
	r.streams(&b)
	r.goals(&b)
	if r.config.Large == 0 {
		b.WriteString(peersNote)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *report) header(b *strings.Builder) {
	a := r.about
	fmt.Fprintf(b, "PostgreSQL %s, fsync %s, synchronous_commit %s, full_page_writes %s, shared_buffers %s; %s, %d cores for everything; "+
		"%d rounds of %v, %v in all.\n",
		a.version, a.fsync, a.synchronous, a.fullPages, a.buffers, runtime.Version(), runtime.NumCPU(),
		r.config.Rounds, r.config.Duration, r.took.Round(time.Second))
	if a.fsync != "on" || a.synchronous == "off" {
		b.WriteString("These commits are not durable, and the figures say nothing about those that are.\n")
	}
	if !r.checkpoints {
		b.WriteString("The role may not CHECKPOINT, so that a scenario may pay for the pages of the one before.\n")
	}
	b.WriteString("\n")
}

func (r *report) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	beside, notes := "floor", tableNotes
	if r.config.Large > 0 {
		beside, notes = "same", largeNotes
	}
	fmt.Fprintf(w, "\trate/s\tleast–most\tp50\tp99\tstmts\ttx\tWAL B\t× %s\t× ceiling\t\n", beside)
	last := r.results[0].scenario.section
	for _, line := range r.results {
		s := line.scenario
		if s.section == theStreams {
			continue
		}
		if s.section != last {
			fmt.Fprintln(w, strings.Repeat("\t", 10))
			last = s.section
		}
		rates := line.over((*sample).rate)
		fmt.Fprintf(w, "%s\t%s\t%s–%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.padded(s.name),
			whole(median(rates)), whole(slices.Min(rates)), whole(slices.Max(rates)), brief(line.of(p50)), brief(line.of(p99)),
			orDash("%.2f")(line.perCommand(func(c counters) int64 { return c.statements })),
			orDash("%.2f")(line.perCommand(func(c counters) int64 { return c.transactions })),
			orDash("%.0f")(line.perCommand(func(c counters) int64 { return c.wal })),
			orDash("%.2f")(compare(line, r.named(s.floor), (*sample).rate)),
			orDash("%.2f")(compare(line, r.named(theBest), (*sample).rate)))
	}
	_ = w.Flush() // into memory
	b.WriteString(notes)
	for _, line := range r.results {
		if purged := line.of(func(s *sample) float64 { return s.purged }); purged > 0 {
			fmt.Fprintf(b, "%s: the engine itself purged %s a second.\n", line.scenario.name, whole(purged))
		}
	}
}

// padded makes names as long as the longest, and so aligns them to the left.
func (r *report) padded(name string) string {
	width := 0
	for _, line := range r.results {
		width = max(width, utf8.RuneCountInString(line.scenario.name))
	}
	return fmt.Sprintf("%-*s", width, name)
}

// lines writes a line for each result that has something to say, under a heading,
// and explains them.
func (r *report) lines(b *strings.Builder, heading, notes string, of func(*result) string) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	said := false
	for _, line := range r.results {
		text := of(line)
		if text == "" {
			continue
		}
		if !said {
			fmt.Fprintf(w, "\n%s\t\n", heading)
			said = true
		}
		fmt.Fprintf(w, "%s\t%s\t\n", r.padded(line.scenario.name), text)
	}
	_ = w.Flush() // into memory
	if said {
		b.WriteString(notes)
	}
}

// sinks says how far behind the sinks were that followed.
func (r *report) sinks(b *strings.Builder) {
	const notes = "lag: from the decision of a transition (so with its commit) to the end of its delivery. A dead sink is not counted.\n"
	r.lines(b, "Sinks\tlag p50\tp99\tbehind in the end", notes, func(line *result) string {
		if line.samples[0].relayed == nil {
			return ""
		}
		p50 := line.of(func(s *sample) float64 { return float64(s.relayed.lag.p50) / 1e6 })
		behind := line.of(func(s *sample) float64 { return float64(s.relayed.behind) })
		return brief(p50) + "\t" + brief(line.of(lag)) + "\t" + whole(behind)
	})
}

func (r *report) streams(b *strings.Builder) {
	r.lines(b, "\ttransitions/s\tdeliveries/s\tp50\tp99\tlost\tout of order\tcut off", streamNotes, func(line *result) string {
		if line.scenario.section != theStreams {
			return ""
		}
		var all delivery
		for _, s := range line.samples {
			all.lost, all.disordered, all.cut = all.lost+s.stream.lost, all.disordered+s.stream.disordered, all.cut+s.stream.cut
		}
		delivered := line.of(func(s *sample) float64 { return float64(s.stream.delivered) / s.took.Seconds() })
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d\t%d", whole(line.of((*sample).rate)), whole(delivered),
			brief(line.of(p50)), brief(line.of(p99)), all.lost, all.disordered, all.cut)
	})
}

func (r *report) goals(b *strings.Builder) {
	b.WriteString("\nGoals\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	list := goals
	if r.config.Large > 0 {
		list = largeGoals
	}
	for _, g := range list {
		v, ok := r.measured(g)
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

func (r *report) measured(g goal) (float64, bool) {
	line := r.named(g.name)
	if g.than != "" {
		return compare(line, r.named(g.than), g.value)
	}
	if line == nil {
		return 0, false
	}
	return line.of(g.value), true
}

// named finds a scenario's result, or that of the best ceiling; nil when it was not
// run.
func (r *report) named(name string) (best *result) {
	for _, line := range r.results {
		if line.scenario.name == name {
			return line
		}
		if name == theBest && line.scenario.ceiling && (best == nil || line.of((*sample).rate) > best.of((*sample).rate)) {
			best = line
		}
	}
	return best
}

// orDash renders a value, or a dash where there is none.
func orDash(format string) func(v float64, ok bool) string {
	return func(v float64, ok bool) string {
		if !ok {
			return "–"
		}
		return fmt.Sprintf(format, v)
	}
}

// whole renders a number without decimals, in groups of three digits.
func whole(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// brief renders milliseconds with three digits.
func brief(ms float64) string {
	return fmt.Sprintf("%.*f ms", max(0, 2-len(fmt.Sprintf("%.0f", ms))+1), ms)
}
