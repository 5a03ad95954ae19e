package bench

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/app/progress"
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
// measured in the same round.
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
	config  Config
	about   about
	results []*result
	took    time.Duration
}

// tableNotes explain the table to readers who do not know the program.
const tableNotes = `
rate: commands a second, the median of the rounds (least–most). p50, p99: of one call, so of a whole batch for SubmitMany and bulk.
stmts, tx, WAL B, CPU µs: statements (BEGIN and COMMIT count), transactions, bytes of write-ahead log, and processor time of this
program and the server together, for each command.
× floor: against the floor with 16 connections; one caller against the floor with one; one instance against the floor on one row;
through PgBouncer against Submit without it; a relay, and several tenants against Submit with 256 callers,
as is "later", which is after so many commands as an old snapshot is open for; that against the same without it. × ceiling:
against what only writes. Ratios are the medians of the rounds' own ratios.
lag, and p50 and p99 of a stream: from the decision of a transition (so with its commit) to the end of its delivery. A dead sink is
not counted; lost is what had not come long after the last commit. Overload: rate and latency are of what was done, from when it was
due, also where it was late; a refusal counts from the call; normal is when callers who wait for their answers have at most twice
the p99 again. Every round's rows were counted: what is claimed above is in the tables.
`

// largeNotes are tableNotes for a run on full tables.
const largeNotes = `
rate: commands a second, the median of the rounds (least–most). p50, p99: of one call; at half of the rate, from when the call was due.
stmts, tx, WAL B, CPU µs: statements (BEGIN and COMMIT count), transactions, bytes of write-ahead log, and processor time of this
program and the server together, for each command.
× same: against the same on empty tables; with a purge, against the same without. Ratios are the medians of the rounds' own ratios.
Callers have 10,240 orders of their own, placed since the checkpoint. "Any instance" is any of the loaded ones: most commands find
pages that nobody has changed since the checkpoint, which go to the log in full; see WAL B. "Old keys" are any of the loaded ones.
`

func (r *report) write(out io.Writer) error {
	var b strings.Builder
	r.header(&b)
	r.table(&b)
	r.goals(&b)
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
	b.WriteString("\n")
}

func (r *report) table(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	beside, notes := "floor", tableNotes
	if r.config.Large > 0 {
		beside, notes = "same", largeNotes
	}
	fmt.Fprintf(w, "\trate/s\tleast–most\tp50\tp99\tstmts\ttx\tWAL B\tCPU µs\t× %s\t× ceiling\tbesides\t\n", beside)
	for _, line := range r.results {
		s := line.scenario
		rates := line.over((*sample).rate)
		fmt.Fprintf(w, "%s\t%s\t%s–%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.padded(s.name),
			whole(median(rates)), whole(slices.Min(rates)), whole(slices.Max(rates)), brief(line.of(p50)), brief(line.of(p99)),
			orDash("%.2f")(line.perCommand(func(c counters) int64 { return c.statements })),
			orDash("%.2f")(line.perCommand(func(c counters) int64 { return c.transactions })),
			orDash("%.0f")(line.perCommand(func(c counters) int64 { return c.wal })),
			orDash("%.0f")(line.perCommand(func(c counters) int64 { return c.processor })),
			orDash("%.2f")(compare(line, r.named(s.floor), (*sample).rate)),
			orDash("%.2f")(compare(line, r.named(ceilingName), (*sample).rate)), line.besides())
	}
	_ = w.Flush() // into memory
	b.WriteString(notes)
}

// padded makes names as long as the longest, and so aligns them to the left.
func (r *report) padded(name string) string {
	width := 0
	for _, line := range r.results {
		width = max(width, utf8.RuneCountInString(line.scenario.name))
	}
	return fmt.Sprintf("%-*s", width, name)
}

// besides describes concurrent work: deliveries of sinks and subscribers, and the purge.
func (r *result) besides() string {
	one := r.samples[0]
	switch {
	case one.lag.n > 0:
		at := func(of func(latency) time.Duration) string {
			return brief(r.of(func(s *sample) float64 { return float64(of(s.lag)) / 1e6 }))
		}
		return "lag p50 " + at(func(l latency) time.Duration { return l.p50 }) + ", p99 " + at(func(l latency) time.Duration { return l.p99 })
	case one.stream != nil:
		var all delivery
		for _, s := range r.samples {
			all.lost, all.disordered, all.cut = all.lost+s.stream.lost, all.disordered+s.stream.disordered, all.cut+s.stream.cut
		}
		delivered := r.of(func(s *sample) float64 { return float64(s.stream.delivered) / s.took.Seconds() })
		return fmt.Sprintf("%s deliveries/s, %d lost, %d out of order, %d cut off", whole(delivered), all.lost, all.disordered, all.cut)
	case one.overload != nil:
		at := func(of func(*overload) float64) float64 {
			return r.of(func(s *sample) float64 { return of(s.overload) })
		}
		ms := func(of func(*overload) time.Duration) string {
			return brief(at(func(o *overload) float64 { return float64(of(o)) / 1e6 }))
		}
		return fmt.Sprintf("%s/s came, 1%% %s late, where %s/s are sustained; refused: p50 %s, p99 %s; normal after %.2f s",
			whole(at(func(o *overload) float64 { return o.offered })), ms(func(o *overload) time.Duration { return o.late.p99 }),
			whole(at(func(o *overload) float64 { return o.sustained })), ms(func(o *overload) time.Duration { return o.refused.p50 }),
			ms(func(o *overload) time.Duration { return o.refused.p99 }), r.of(untilNormal))
	case one.amid != nil:
		at := func(of func(*amid) float64) float64 { return r.of(func(s *sample) float64 { return of(s.amid) }) }
		return fmt.Sprintf("%s/s migrated, %d nodes killed; p99 without %s, where idle nodes are killed %s",
			whole(at(func(a *amid) float64 { return a.migrated })), one.amid.kills,
			brief(at(func(a *amid) float64 { return a.without })), brief(at(func(a *amid) float64 { return a.idle })))
	case one.after > 0:
		return whole(r.of(func(s *sample) float64 { return s.after })) + "/s after its end"
	case one.purges:
		return "the engine itself purged " + whole(r.of(func(s *sample) float64 { return s.purged })) + "/s"
	}
	return ""
}

// named finds a scenario's result; nil when it was not run.
func (r *report) named(name string) *result {
	for _, line := range r.results {
		if line.scenario.name == name {
			return line
		}
	}
	return nil
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
func whole(v float64) string { return progress.Grouped(int64(math.Round(v))) }

// brief renders milliseconds with three digits.
func brief(ms float64) string {
	return fmt.Sprintf("%.*f ms", max(0, 2-len(fmt.Sprintf("%.0f", ms))+1), ms)
}
