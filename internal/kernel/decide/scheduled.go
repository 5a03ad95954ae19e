package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// schedule schedules a command. It only checks that the instance exists.
func schedule(p *Prepared, inst *transitions.Instance) Decision {
	if !p.Creates {
		if err := belongs(p, inst); err != nil {
			return failed(err)
		}
	}
	definition := 0
	if inst != nil && !p.Creates {
		definition = inst.Definition
	}
	return Decision{Stored: true, Status: transitions.Pending, Code: 202, Flight: &Flight{
		Phase: transitions.Scheduled, RunAt: p.NotBefore, Definition: definition,
		Request: Request{Payload: p.Canonical, Roles: p.Roles, Proof: p.Proof, Credential: p.Credential, Reason: p.Reason, IfVersion: p.IfVersion,
			BusinessKey: p.BusinessKey, Creates: p.Creates, Replay: int64(p.Replay), Tombstone: int64(p.Tombstone), Trace: p.Trace}.encode()}}
}

// decideDue decides a scheduled command that is due, cancelled or abandoned. Without a caller to correct it, an error that a retry does not
// remove becomes its answer.
func decideDue(p *Prepared, w *workflow.Workflow, inst *transitions.Instance, now time.Time) Decision {
	if o := p.Resumed.Outcome; o != nil {
		stopped := workflow.Errorf(codeOf(o.Failure.Kind), "%s", o.Failure.Message)
		if p.isCompletion() && belongs(p, inst) == nil {
			return recordCompletion(p, w, inst, stopped, now)
		}
		return refused(stopped)
	}
	d := decideNow(p, w, inst, now)
	if p.isCompletion() {
		return complete(p, w, inst, d, now)
	}
	if d.Err != nil && !d.Stored && !d.Err.Code.Info().Retry {
		d = refused(d.Err)
	}
	return d
}

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
