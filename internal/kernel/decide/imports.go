package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// An import is a transition that has happened before. The workflow's code and timers see the time when it happened, and an instance that it
// creates was created then. Its row and position in the log are of now.

// asOf returns the time that the workflow's code sees.
func (p *Prepared) asOf(now time.Time) time.Time {
	if p.HappenedAt.IsZero() {
		return now
	}
	return p.HappenedAt
}

// importable refuses imports of future transitions and of activities, whose effect would be repeated.
func (p *Prepared) importable(step *workflow.Step, now time.Time) *workflow.Error {
	switch {
	case p.HappenedAt.IsZero():
	case p.HappenedAt.After(now):
		return invalid("the command has happened at %s, which is later than now",
			p.HappenedAt.Format(time.RFC3339))
	case step.Work != nil:
		return invalid("%q does something outside, which would happen once more; import what has come of it by a transition that does not", step.Name)
	}
	return nil
}

// importGrace delays overdue timers armed by an import, so that the rest of the history can be imported.
const importGrace = time.Hour

// fires returns when a timer fires. It reports overdue timers in the answer of an import, a migration or a correction.
func (c *change) fires(d *Decision, t *workflow.Timer, due time.Time) time.Time {
	earliest := c.now
	if !c.p.HappenedAt.IsZero() {
		earliest = c.now.Add(importGrace)
	}
	told := earliest.After(c.now) || c.plan != nil || c.name == correctedEntry
	if told && due.Before(c.now) {
		d.Overdue = append(d.Overdue, transitions.OverdueTimer{Timer: t.Name, Transition: t.Do, Due: due.UTC().Truncate(time.Microsecond),
			Fires: earliest.UTC()})
	}
	if due.Before(earliest) {
		return earliest
	}
	return due
}
