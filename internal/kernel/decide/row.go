package decide

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Row is the row of a new command, or the update of an existing one. In flight (Phase) it has no answer.
type Row struct {
	transitions.Record
	Keep       Keep
	Definition int // of the instance, in flight, where it is known

	// Of an existing row, as it was read:
	Seen int
	Was  transitions.Status
}

// HorizonsOf returns the retention periods of a workflow, resolved.
type HorizonsOf func(workflowName string) workflow.Horizons

// RowOf returns the row of a command whose decision is stored.
func RowOf(p *Prepared, d *Decision, horizons HorizonsOf, now time.Time) Row {
	r := Row{Keep: Keep{Replay: p.Replay, Tombstone: p.Tombstone, Answer: d.Answer}, Record: transitions.Record{
		Scope: p.Scope, Key: p.Key, Fingerprint: p.Fingerprint, Status: d.Status, Workflow: p.Workflow, Transition: p.Transition,
		Instance: p.Instance, Version: d.Entry.Version, Actor: p.Actor, CreatedAt: now}}
	if p.Resumed != nil {
		r.Seen, r.Was, r.Attempt = p.Resumed.Attempt, transitions.Processing, p.Resumed.Attempt
	}
	r.put(d.Flight, d.Code, d.Body, horizons, now)
	return r
}

// Begun returns the record of a command that a decision puts in flight.
func (p *Prepared) Begun(d *Decision, now time.Time) *transitions.Record {
	r := RowOf(p, d, nil, now)
	return &r.Record
}

// Row returns the update of the operation's target.
func (t *Target) Row(horizons HorizonsOf, now time.Time) Row {
	r := Row{Seen: t.Attempt, Was: t.Was, Keep: t.Keep, Record: transitions.Record{Scope: t.Scope, Key: t.Key, Workflow: t.Workflow,
		Status: t.Status, Version: t.Version, Attempt: t.Attempt}}
	r.put(t.Flight, t.Code, t.Body, horizons, now)
	return r
}

// Row returns the row of a new command.
func (p *Planned) Row(now time.Time) Row {
	r := Row{Record: transitions.Record{Scope: p.Scope, Key: p.Key, Fingerprint: p.Fingerprint, Status: transitions.Pending,
		Workflow: p.Workflow, Transition: p.Transition, Instance: p.Instance, Actor: p.Actor, CreatedAt: now}}
	r.put(&p.Flight, 0, nil, nil, now)
	return r
}

// put sets the flight or the answer.
func (r *Row) put(f *Flight, code int, body []byte, horizons HorizonsOf, now time.Time) {
	r.UpdatedAt = now
	if f != nil {
		r.Phase, r.RunAt, r.Request, r.Definition = f.Phase, f.RunAt, f.Request, f.Definition
		return
	}
	r.Code, r.Body, r.FinishedAt, r.ExpiresAt = code, body, now, r.Keep.Until(horizons(r.Workflow), now)
}
