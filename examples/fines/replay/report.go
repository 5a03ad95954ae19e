package replay

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/examples/fines/replay/fold"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
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

	Again int64 // submissions that were repeated because there was no answer

	// Examples are the first events that count under Twice, Unequal or Wrong.
	Examples []string

	Durable *Durable // nil before Check

	mu sync.Mutex
}

// maxExamples bounds what a report that is all wrong says in detail.
const maxExamples = 10

// add counts the answers to a batch.
func (r *Report) add(cases []fold.Case, callers *[2]caller, tell func(int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range cases {
		version := int64(0)
		for _, want := range c.Outcomes {
			made := int64(0) // by an event that is accepted
			if want.Reason == "" {
				version++
				made = version
			}
			r.addOne(&want, made, callers[0].replies[n], callers[1].replies[n])
			n++
		}
	}
	r.Again += int64(callers[0].again + callers[1].again)
	r.Cases, r.Events = r.Cases+int64(len(cases)), r.Events+int64(n)
	tell(r.Events)
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

// reasonOf says in the fold's words what became of an event: "" for accepted,
// the guard's text, or else the code.
func reasonOf(r transitions.Reply) string {
	err := r.Err
	if err == nil {
		err = r.Receipt.Err()
	}
	if e, ok := errors.AsType[*workflow.Error](err); ok && e.Code == workflow.GuardRefused {
		return e.Message
	}
	return string(workflow.CodeOf(err))
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
	if r.Twice+r.Unequal+r.Wrong > 0 {
		return fmt.Errorf("replay: %d events executed twice, %d answered differently to the two callers, %d otherwise than the fold says",
			r.Twice, r.Unequal, r.Wrong)
	}
	if d := r.Durable; d != nil && d.Differences > 0 {
		return fmt.Errorf("replay: what is durable differs from the fold in %d places, for example: %s", d.Differences, d.Examples[0])
	}
	return nil
}

// String is the report as text, in several lines.
func (r *Report) String() string {
	var b strings.Builder
	// line writes a line with its numbers grouped.
	line := func(format string, args ...any) {
		for i, arg := range args {
			if n, ok := arg.(int64); ok {
				args[i] = progress.Grouped(n)
			}
		}
		fmt.Fprintf(&b, format+"\n", args...)
	}
	line("replayed %s", r.Log)
	line("  %s cases, %s events, each submitted by two callers at the same time", r.Cases, r.Events)
	line("  %s answers in %v", 2*r.Events, r.Elapsed.Round(10*time.Millisecond))
	line("  %s events accepted", r.Accepted)
	for _, reason := range slices.Sorted(maps.Keys(r.Refused)) {
		line("  %s refused: %s", r.Refused[reason], reason)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Malformed)) {
		line("  %s malformed: %s", r.Malformed[reason], reason)
	}
	line("  %s done once and replayed to the other caller", r.Once)
	line("  %s replayed to both: done before, by an attempt whose answer was lost, or in an earlier replay", r.Found)
	line("  %s submitted again after a missing answer", r.Again)
	line("  %s executed twice, %s answered differently to the two callers, %s otherwise than the fold says", r.Twice, r.Unequal, r.Wrong)
	examples := r.Examples
	if d := r.Durable; d != nil {
		line("durable, compared with the fold:")
		line("  %s cases with their states, versions and sums", d.Cases)
		line("  %s commands with their answers", d.Commands)
		line("  %s transitions: as many positions from 1 without a gap, audit rows and events", d.Head)
		line("  %s chains with %s rows verified", d.Chains, d.Rows)
		line("  the trace of all events has the SHA-256 %s", d.Digest)
		line("  %s differences", d.Differences)
		examples = slices.Concat(examples, d.Examples)
	}
	for _, e := range examples {
		line("  ! %s", e)
	}
	return b.String()
}
