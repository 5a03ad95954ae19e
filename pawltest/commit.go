package pawltest

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
)

// replay is how long an answer is replayed where its workflow does not say it, as engines do unless told otherwise.
const replay = 24 * time.Hour

// commit decides a command and takes over what it decides, as the pipeline of an engine does in a transaction.
func (s *Sim) commit(p *decide.Prepared) (transitions.Receipt, error) {
	ref := transitions.Ref{Tenant: p.Tenant, Scope: p.Scope, Key: p.Key}
	c := s.commands[ref]
	if p.Resumed != nil {
		if c == nil || !decide.HeldBy(&c.Record, p.Resumed) {
			return transitions.Receipt{}, decide.ErrNotHeld()
		}
	} else if c != nil {
		record := c.Record
		return decide.Classify(&record, p.Fingerprint, s.now).Answer(&record)
	}
	inst := s.instances[address{p.Tenant, p.Instance}]
	w, err := decide.VersionFor(p, inst, s.workflows.Find)
	if err != nil {
		return transitions.Receipt{}, err
	}
	d := decide.DecideAll(s.aimed(p), w, inst, s.workflows.Find, s.taken(p.Tenant), s.now)
	if !d.Stored {
		return transitions.Receipt{}, d.Err
	}
	return s.take(p, &d), nil
}

// taken tells which instances of a tenant there are.
func (s *Sim) taken(tenant string) decide.Taken {
	return func(id uuid.UUID) bool { return s.instances[address{tenant, id}] != nil }
}

// aimed is an operation with what it is about.
func (s *Sim) aimed(p *decide.Prepared) *decide.Prepared {
	if p.Operation == nil || p.Operation.Target.Scope == "" {
		return p
	}
	aimed := *p
	if c := s.commands[transitions.Ref{Tenant: p.Tenant, Scope: p.Operation.Target.Scope, Key: p.Operation.Target.Key}]; c != nil {
		record := c.Record
		aimed.Stuck = &record
	}
	return &aimed
}

// take makes a decision part of the run, and returns the answer.
func (s *Sim) take(p *decide.Prepared, d *decide.Decision) transitions.Receipt {
	var position int64
	if d.After != nil {
		tenant := d.Entry.Tenant
		s.heads[tenant]++
		d.Entry.Position = s.heads[tenant]
		at := address{tenant, d.After.ID}
		s.instances[at] = d.After
		s.history[at] = append(s.history[at], d.Entry)
		for _, e := range d.Events {
			e.Position = s.heads[tenant]
			s.events = append(s.events, e)
		}
		position = s.heads[tenant]
	}
	receipt := decide.ReceiptOf(p, d, position)
	c := s.keep(p.Tenant, decide.RowOf(p, d, s.workflows.Horizons, s.now), position)
	s.changeOthers(p, d, position)
	for _, child := range d.Children {
		s.take(child.Prepared, &child.Decision)
	}
	if d.Flight != nil {
		record := c.Record
		receipt.Record = &record
	}
	return receipt
}

// keep makes a row part of the run: a new command, or what becomes of one. position is that of the transition.
func (s *Sim) keep(tenant string, row decide.Row, position int64) *command {
	ref := transitions.Ref{Tenant: tenant, Scope: row.Scope, Key: row.Key}
	c := s.commands[ref]
	if c == nil {
		c = &command{tenant: tenant, number: s.next(), Record: row.Record}
		c.Version = 0 // until it is taken over, with the position
		s.commands[ref] = c
	} else {
		c.Revision++
	}
	if row.Version > c.Version {
		c.Version, c.Position = row.Version, position
	}
	c.Status, c.Phase, c.RunAt, c.Request, c.UpdatedAt = row.Status, row.Phase, row.RunAt, row.Request, row.UpdatedAt
	c.Code, c.Body, c.FinishedAt, c.ExpiresAt = row.Code, row.Body, row.FinishedAt, row.ExpiresAt
	c.Stuck, c.LockedUntil, c.unsure, c.none = "", time.Time{}, false, false
	if c.InFlight() {
		s.flying[ref], c.Failures = c, 0
	} else {
		delete(s.flying, ref)
	}
	return c
}

// changeOthers does what a decision makes of other commands.
func (s *Sim) changeOthers(p *decide.Prepared, d *decide.Decision, position int64) {
	for _, scope := range d.Disarmed {
		// A timer that fires, the command that is being decided, stays.
		for ref := range s.flying {
			if ref.Tenant == p.Tenant && ref.Scope == scope && (p.Scope != scope || p.Key != ref.Key) {
				delete(s.flying, ref)
				delete(s.commands, ref)
			}
		}
	}
	for _, planned := range d.Commands {
		ref := transitions.Ref{Tenant: p.Tenant, Scope: planned.Scope, Key: planned.Key}
		if s.commands[ref] != nil {
			s.t.Fatalf("pawltest: the command %s %s is made twice, which an engine's tables refuse: a defect of Pawl", ref.Scope, ref.Key)
		}
		s.keep(p.Tenant, planned.Row(s.now), 0)
	}
	if d.Resumed {
		s.resume(p.Tenant, p.Instance)
	}
	for _, due := range d.Due {
		c := s.commands[transitions.Ref{Tenant: p.Tenant, Scope: due.Scope, Key: due.Key}]
		if c != nil && c.Phase == transitions.Scheduled && c.RunAt.After(s.now) {
			c.RunAt, c.UpdatedAt = s.now, s.now
			c.Revision++
		}
	}
	if b := d.Cancelled; b != nil {
		if c := s.commands[transitions.Ref{Tenant: p.Tenant, Scope: b.Scope, Key: b.Key}]; c != nil && c.InFlight() {
			s.cancel(c, p.Actor)
		}
	}
	if t := d.Target; t != nil {
		s.keep(p.Tenant, t.Row(s.workflows.Horizons, s.now), position)
	}
}

// cancel asks a command to stop: one that waits is due, to end.
func (s *Sim) cancel(c *command, by string) {
	c.CancelledBy, c.Stuck, c.UpdatedAt = by, "", s.now
	c.Revision++
	if c.Status != transitions.Processing {
		c.RunAt = s.now
	}
	if c.stop != nil {
		c.stop(&decide.CancelledError{By: by})
	}
}
