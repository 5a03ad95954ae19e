package diagram

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// line is what one transition does at an arrow.
type line struct {
	step   *workflow.Step
	end    end
	timers []*workflow.Timer // that do it by themselves
	last   bool              // to the states that were active last
}

// end is which end of an activity a line is about; "" is its accept, and what
// has no activity.
type end string

const (
	done   end = "done"
	failed end = "failed"
)

// caption names the transition. It has no colon: versions of Mermaid end a label
// there.
func (l line) caption() string {
	if l.end != "" {
		return l.step.Name + " " + string(l.end)
	}
	caption := l.step.Name
	if l.last {
		caption += " to the last states"
	}
	if len(l.step.Roles) > 0 {
		caption += " [" + strings.Join(l.step.Roles, ", ") + "]"
	}
	var times []string
	for _, t := range l.timers {
		times = append(times, timeOf(t))
	}
	if times != nil {
		caption += " " + strings.Join(times, ", ")
	}
	return caption
}

func timeOf(t *workflow.Timer) string {
	if t.FromData() {
		return "at " + t.Name
	}
	return "after " + span(t.After)
}

// details say more than the caption.
func (l line) details() string {
	lines := []string{l.caption()}
	s := l.step
	if l.end == failed && len(s.Work.Undoes) > 0 {
		lines = append(lines, "undoes: "+strings.Join(s.Work.Undoes, ", "))
	}
	if l.end == done && len(s.Work.Settles) > 0 {
		lines = append(lines, "settles: "+strings.Join(s.Work.Settles, ", "))
	}
	if l.end != "" {
		return strings.Join(lines, "\n")
	}
	if s.Doc != "" {
		lines = append(lines, s.Doc)
	}
	if len(s.Guards) > 0 {
		lines = append(lines, "only if: "+strings.Join(s.Guards, ", "))
	}
	if len(s.NotBy) > 0 {
		lines = append(lines, "not by who did: "+strings.Join(s.NotBy, ", "))
	}
	if len(s.NotByLast) > 0 {
		lines = append(lines, "not by the last actor of: "+strings.Join(s.NotByLast, ", "))
	}
	if len(s.Since) > 0 {
		lines = append(lines, "counted since the last: "+strings.Join(s.Since, ", "))
	}
	for _, t := range l.timers {
		lines = append(lines, fmt.Sprintf("by itself %s: timer %s", timeOf(t), t.Name))
	}
	if s.Work != nil {
		lines = append(lines, fmt.Sprintf("attempts: %d, of %s each", s.Work.Retry.Attempts, span(s.Work.Timeout)))
	}
	return strings.Join(lines, "\n")
}

// span writes a duration without the units that say nothing, and whole days as
// days from the second on.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d > day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
