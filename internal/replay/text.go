package replay

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// String is the report for a person to read, in several lines.
func (r *Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	answers := 2 * r.Events
	line("replayed %s", r.Log)
	line("  %s cases, %s events, each submitted by two callers at the same time", number(r.Cases), number(r.Events))
	line("  %s answers in %s: %s a second", number(answers), r.Elapsed.Round(10*time.Millisecond), number(rate(answers, r.Elapsed)))
	line("  %s events accepted, %s refused, %s malformed", number(r.Accepted), number(sum(r.Refused)), number(sum(r.Malformed)))
	for _, reasons := range []map[string]int64{r.Refused, r.Malformed} {
		for _, reason := range byCount(reasons) {
			line("    %s %s", number(reasons[reason]), reason)
		}
	}
	stored := r.Accepted + sum(r.Refused)
	line("  %s done once and replayed to the other caller (%s of the duplicates)", number(r.Once), share(r.Once, stored))
	if r.Found > 0 {
		line("  %s replayed to both: done before, by an attempt whose answer was lost, or in an earlier replay", number(r.Found))
	}
	if r.Again > 0 {
		line("  %s submitted again, because there was no answer", number(r.Again))
	}
	if r.Overtaken > 0 {
		line("  %s done before an earlier event of their case that had to be submitted again", number(r.Overtaken))
	}
	line("  %s executed twice, %s answered differently to the two callers, %s otherwise than the fold says",
		number(r.Twice), number(r.Unequal), number(r.Wrong))
	if r.Durable != nil {
		r.Durable.write(line)
	}
	for _, e := range r.Examples {
		line("  ! %s", e)
	}
	return b.String()
}

func (d *Durable) write(line func(format string, args ...any)) {
	line("durable, compared with the fold in %s", d.Elapsed.Round(10*time.Millisecond))
	line("  %s cases with their states, versions and sums", number(d.Cases))
	line("  %s commands with their answers", number(d.Commands))
	line("  %s transitions: as many positions from 1 without a gap, audit rows and events", number(d.Head))
	line("  %s chains with %s rows verified", number(d.Chains), number(d.Rows))
	line("  the trace of all events has the SHA-256 %s", d.Digest)
	line("  %s differences", number(d.Differences))
	for _, e := range d.Examples {
		line("  ! %s", e)
	}
}

// number writes 1234567 as 1,234,567.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func rate(n int64, d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64(float64(n) / d.Seconds())
}

func share(part, whole int64) string {
	if whole == 0 {
		return "none"
	}
	// Rounded down: 100 % is all of them.
	percent := strconv.FormatFloat(float64(part*1000/whole)/10, 'f', -1, 64)
	return percent + " %"
}

func sum(counts map[string]int64) int64 {
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	return total
}

// byCount lists reasons, the most frequent first.
func byCount(counts map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if d := counts[b] - counts[a]; d != 0 {
			return int(d)
		}
		return strings.Compare(a, b)
	})
}
