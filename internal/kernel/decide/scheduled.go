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
