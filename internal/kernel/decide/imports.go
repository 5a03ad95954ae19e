package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// An import is a transition that has happened before. It is decided as of then: the workflow's code and its timers
// see that time, and an instance that it creates was created then. Its row and its place in the log are of now.

// asOf is the time that the workflow's code sees.
func (p *Prepared) asOf(now time.Time) time.Time {
	if p.HappenedAt.IsZero() {
		return now
	}
	return p.HappenedAt
}

// importable refuses an import of what has not happened, or would happen once more.
func (p *Prepared) importable(step *workflow.Step, now time.Time) *workflow.Error {
	switch {
	case p.HappenedAt.IsZero():
	case p.HappenedAt.After(now):
		return workflow.Errorf(workflow.InvalidRequest, "the command has happened at %s, which is later than now",
			p.HappenedAt.Format(time.RFC3339))
	case step.Work != nil:
		return workflow.Errorf(workflow.InvalidRequest,
			"%q does something outside, which would happen once more; import what has come of it by a transition that does not", step.Name)
	}
	return nil
}

// importGrace is how long timers armed by an import do not fire, so that the rest of the history can be imported, and an operator can look
// at overdue timers.
const importGrace = time.Hour

// fires returns when a timer that is due at a time fires. It records overdue timers if the answer can report them: that of an import, a
// migration or a correction.
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
