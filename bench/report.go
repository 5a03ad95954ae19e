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
	r.purges(&b)
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
	fmt.Fprintf(b, "PostgreSQL %s, fsync %s, synchronous_commit %s, full_page_writes %s, shared_buffers %s; %s, %d cores for everything; %s.\n",
		a.version, a.fsync, a.synchronous, a.fullPages, a.buffers, runtime.Version(), runtime.NumCPU(),
		counted(r.config.Rounds, "round")+" of "+r.config.Duration.String()+", "+r.took.Round(time.Second).String()+" in all")
	if a.fsync != "on" || a.synchronous == "off" {
		b.WriteString("These commits are not durable, and the figures say nothing about those that are.\n")
	}
	if !r.checkpoints {
		b.WriteString("The role may not CHECKPOINT, so that a scenario may pay for the pages of the one before.\n")
	}
	b.WriteString("\n")
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// of are the results of the sections from first to last.
func (r *report) of(first, last section) (some []*result, width int) {
	for _, line := range r.results {
		if s := line.scenario; s.section >= first && s.section <= last {
			some = append(some, line)
			width = max(width, utf8.RuneCountInString(s.name))
		}
	}
	return some, width
}

func (r *report) table(b *strings.Builder) {
	lines, width := r.of(theFloor, theAPI)
	if len(lines) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	beside, notes := "floor\t× ceiling", tableNotes
	if r.config.Large > 0 {
		beside, notes = "same\t× ceiling", largeNotes
	}
	fmt.Fprintf(w, "\trate/s\tleast–most\tp50\tp99\tstmts\ttx\tWAL B\t× %s\t\n", beside)
	ceiling := r.ceiling()
	last := lines[0].scenario.section
	for _, line := range lines {
		s := line.scenario
		if s.section != last {
			fmt.Fprintln(w, strings.Repeat("\t", 10))
			last = s.section
		}
		rates := line.rates()
		fmt.Fprintf(w, "%-*s\t%s\t%s–%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", width, s.name,
			whole(median(rates)), whole(slices.Min(rates)), whole(slices.Max(rates)),
			brief(line.quantile(0.50)), brief(line.quantile(0.99)),
			orDash("%.2f")(line.perCommand(func(c cost) int64 { return c.statements })),
			orDash("%.2f")(line.perCommand(func(c cost) int64 { return c.transactions })),
			orDash("%.0f")(line.perCommand(func(c cost) int64 { return c.wal })),
			orDash("%.2f")(compare(line, r.named(s.floor), (*sample).rate)),
			orDash("%.2f")(compare(line, ceiling, (*sample).rate)))
	}
	_ = w.Flush() // into memory
	b.WriteString(notes)
}

// purges says how fast was purged beside the scenarios that did.
func (r *report) purges(b *strings.Builder) {
	for _, line := range r.results {
		var rates []float64
		for _, s := range line.samples {
			if s.purged > 0 {
				rates = append(rates, s.purged)
			}
		}
		if len(rates) > 0 {
			fmt.Fprintf(b, "%s: the engine itself purged %s a second.\n", line.scenario.name, whole(median(rates)))
		}
	}
}

func (r *report) streams(b *strings.Builder) {
	lines, width := r.of(theStreams, theStreams)
	if len(lines) == 0 {
		return
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\ttransitions/s\tdeliveries/s\tp50\tp99\tlost\tout of order\tcut off\t")
	for _, line := range lines {
		delivered := line.over(func(s *sample) float64 { return float64(s.stream.delivered) / s.took.Seconds() })
		fmt.Fprintf(w, "%-*s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t\n", width, line.scenario.name,
			whole(median(line.rates())), whole(median(delivered)), brief(line.quantile(0.50)), brief(line.quantile(0.99)),
			line.total(func(d *delivery) int64 { return d.lost }), line.total(func(d *delivery) int64 { return d.disordered }),
			line.total(func(d *delivery) int64 { return d.cut }))
	}
	_ = w.Flush() // into memory
	b.WriteString(streamNotes)
}

// sinks says how far behind the sinks were that followed.
func (r *report) sinks(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "\nSinks\tlag p50\tp99\tbehind in the end\t\n"
	for _, line := range r.results {
		if len(line.samples) == 0 || line.samples[0].relayed == nil {
			continue
		}
		fmt.Fprint(w, head)
		head = ""
		behind := line.over(func(s *sample) float64 { return float64(s.relayed.behind) })
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", line.scenario.name, brief(line.lag(0.50)), brief(line.lag(0.99)), whole(median(behind)))
	}
	_ = w.Flush() // into memory
	if head == "" {
		b.WriteString("lag: from the decision of a transition (so with its commit) to the end of its delivery. A dead sink is not counted.\n")
	}
}

// lag is how long after its decision an event was delivered, as the median of the
// rounds.
func (r *result) lag(q float64) time.Duration {
	return time.Duration(median(r.over(func(s *sample) float64 { return float64(s.relayed.lag.quantile(q)) })))
}

// total sums a figure of the deliveries of all rounds.
func (r *result) total(of func(*delivery) int64) (n int64) {
	for _, s := range r.samples {
		n += of(s.stream)
	}
	return n
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

// ceiling is the best of the ceilings; nil when none was run.
func (r *report) ceiling() (best *result) {
	for _, line := range r.results {
		if line.scenario.ceiling && (best == nil || median(line.rates()) > median(best.rates())) {
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

// brief renders a duration with three digits.
func brief(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	default:
		return fmt.Sprintf("%.0f ms", ms)
	}
}
