package replay

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/replay/fold"
	"github.com/pawlhq/pawl/transitions"
)

// Report is what came of a replay. [Run] fills all but Durable, [Check] that.
type Report struct {
	Log     string
	Cases   int64
	Events  int64         // that both callers have an answer for
	Elapsed time.Duration // of the submissions

	// Events by what became of them.
	Accepted  int64
	Refused   map[string]int64 // for good, by reason: the guard's text or the code
	Malformed map[string]int64 // nothing of them is stored, by code

	// Of the events whose outcome is stored: how many were answered to one of
	// the callers as done now, and to the other as a replay.
	Once int64
	// Answered to both as a replay: the answer of the attempt that did it was
	// lost with a connection, or the log was played before.
	Found int64
	// Answered to both as done now: two effects. Never.
	Twice int64
	// Answered differently to the two. Never.
	Unequal int64
	// Answered otherwise than the fold says. Never.
	Wrong int64

	Again     int64 // submissions that were repeated because there was no answer
	Overtaken int64 // events that were done before one submitted ahead of them, which had to be repeated

	// Examples are the first events that count under Twice, Unequal or Wrong.
	Examples []string

	Durable *Durable // nil before Check

	mu    sync.Mutex
	began time.Time
}

// maxExamples bounds what a report that is all wrong says in detail.
const maxExamples = 10

func newReport(l Log) *Report {
	return &Report{Log: l.String(), Refused: map[string]int64{}, Malformed: map[string]int64{}, began: time.Now()}
}

func (r *Report) finish() {
	r.Elapsed = time.Since(r.began)
}

// add counts the answers to a batch.
func (r *Report) add(b *batch, callers *[2]caller, progress func(int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range b.commands {
		r.addOne(&b.want[i], b.version[i], callers[0].replies[i], callers[1].replies[i])
	}
	for _, c := range callers {
		r.Again += int64(c.again)
		r.Overtaken += int64(c.overtaken)
	}
	r.Cases += int64(b.cases)
	r.Events += int64(len(b.commands))
	if progress != nil {
		progress(r.Events)
	}
}

func (r *Report) addOne(want *fold.Outcome, version int64, first, second transitions.Reply) {
	reason := reasonOf(first)
	switch {
	case first.Err != nil:
		r.Malformed[reason]++
	case reason != "":
		r.Refused[reason]++
	default:
		r.Accepted++
	}
	if !equal(first, second) {
		r.Unequal++
		r.example(want, "was answered differently: %s and %s", describe(first), describe(second))
	}
	if reason != want.Reason || first.Receipt.Version != version {
		r.Wrong++
		r.example(want, "was answered %s; the fold says %q, version %d", describe(first), want.Reason, version)
	}
	if first.Err != nil || second.Err != nil {
		return
	}
	switch {
	case first.Receipt.Replayed != second.Receipt.Replayed:
		r.Once++
	case first.Receipt.Replayed:
		r.Found++
	default:
		r.Twice++
		r.example(want, "was executed twice")
	}
}

func equal(a, b transitions.Reply) bool {
	if a.Err != nil || b.Err != nil {
		return a.Err != nil && b.Err != nil && reasonOf(a) == reasonOf(b)
	}
	return a.Receipt.Status == b.Receipt.Status && bytes.Equal(a.Receipt.Body, b.Receipt.Body)
}

func describe(r transitions.Reply) string {
	if r.Err != nil {
		return fmt.Sprintf("%q", r.Err.Error())
	}
	return fmt.Sprintf("%d %s", r.Receipt.Status, r.Receipt.Body)
}

func (r *Report) example(o *fold.Outcome, format string, args ...any) {
	if len(r.Examples) < maxExamples {
		r.Examples = append(r.Examples, fmt.Sprintf("case %s, event %d (%s) ", o.Case, o.Number, o.Transition)+fmt.Sprintf(format, args...))
	}
}

// Err is nil if the replay kept the promise: every event had one effect, both
// callers got the same answer, and all of it is what the fold says.
func (r *Report) Err() error {
	if n := r.Twice + r.Unequal + r.Wrong; n > 0 {
		return fmt.Errorf("replay: %d events executed twice, %d answered differently to the two callers, %d otherwise than the fold says",
			r.Twice, r.Unequal, r.Wrong)
	}
	if r.Durable != nil {
		return r.Durable.Err()
	}
	return nil
}
