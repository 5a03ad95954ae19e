package commit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/outbox"
	"github.com/pawlhq/pawl/transitions"
)

// writes reports whether the group has anything to write.
func (g *group) writes() bool {
	return slices.ContainsFunc(g.parts, func(t *part) bool { return len(t.stored) > 0 })
}

// fill turns what the group decided into rows, each table's in lock order.
func (g *group) fill() error {
	for _, span := range g.spans() {
		s := setsPool.Get().(*sets)
		s.reset()
		s.parts = span
		g.sets = append(g.sets, s)
		for _, t := range span {
			if err := g.fillPart(s, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *group) fillPart(s *sets, t *part) error {
	var touched []*slot
	for _, slot := range t.slots {
		if slot.changed {
			touched = append(touched, slot)
		}
	}
	slices.SortFunc(touched, compareSlots)
	for _, slot := range touched {
		var err error
		if slot.before == 0 {
			err = s.created.Add(t.tenant, slot.inst)
		} else {
			err = s.changed.Add(t.tenant, &store.Changed{Instance: slot.inst, Row: slot.row, Before: slot.before})
		}
		if err != nil {
			return err
		}
	}
	if err := g.fillCommands(s, t); err != nil {
		return err
	}
	return s.fillLog(t)
}

// fillLog adds the tenant's transitions. The steps of the events count the transitions of
// all tenants of the statement.
func (s *sets) fillLog(t *part) error {
	if len(t.steps) == 0 {
		return nil
	}
	s.moved = append(s.moved, t)
	s.moves.Tenant(t.tenant)
	s.moves.Int8(int64(len(t.steps)))
	for _, o := range t.steps {
		audit.Add(s.entries, &o.decision.Entry)
		for i := range o.decision.Events {
			if err := outbox.Add(s.events, s.entries.Len(), &o.decision.Events[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillCommands adds the rows of commands, each statement's in the order of their
// keys.
func (g *group) fillCommands(s *sets, t *part) error {
	var created, settled []store.Command
	for _, o := range t.stored {
		if o.p.Resumed != nil {
			settled = append(settled, g.ended(o))
		} else {
			created = append(created, g.begun(o))
		}
		if target := o.decision.Target; target != nil {
			settled = append(settled, g.aimedAt(target))
		}
	}
	for i := range t.planned {
		created = append(created, g.planned(&t.planned[i]))
	}
	into := s.commands
	if slices.ContainsFunc(created, func(c store.Command) bool { return c.Wide() }) {
		into = s.accepted
	}
	for i := range t.cancelled {
		t.cancelled[i].At = g.now
	}
	slices.SortFunc(t.cancelled, func(a, b store.Cancelled) int { return compareKey(a.Scope, a.Key, b.Scope, b.Key) })
	for i := range t.cancelled {
		if err := s.cancelled.Add(t.tenant, &t.cancelled[i]); err != nil {
			return err
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(t.disarmed)) {
		if err := s.disarmed.Add(t.tenant, &store.Disarmed{Scope: scope, Spare: t.disarmed[scope]}); err != nil {
			return err
		}
	}
	return errors.Join(addSorted(into, t.tenant, created), addSorted(s.settled, t.tenant, settled))
}

func addSorted(into *store.Rows[store.Command], tenant string, list []store.Command) error {
	slices.SortFunc(list, func(a, b store.Command) int { return compareKey(a.Scope, a.Key, b.Scope, b.Key) })
	for i := range list {
		if err := into.Add(tenant, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

// begun is the row of a command that was decided just now.
func (g *group) begun(o *op) store.Command {
	c := store.Command{Record: transitions.Record{Scope: o.p.Scope, Key: o.p.Key, Fingerprint: o.p.Fingerprint, Workflow: o.p.Workflow,
		Transition: o.p.Transition, Instance: o.p.Instance, Actor: o.p.Actor, CreatedAt: g.now}}
	g.decided(&c, o)
	if d := &o.decision; d.Plain && d.Flight == nil {
		c.State, c.Body = d.After.State, d.Result
	}
	return c
}

// ended is what becomes of the row of a command that goes on.
func (g *group) ended(o *op) store.Command {
	c := store.Command{Seen: o.p.Resumed.Attempt, Was: transitions.Processing,
		Record: transitions.Record{Scope: o.p.Scope, Key: o.p.Key, Workflow: o.p.Workflow, Attempt: o.p.Resumed.Attempt}}
	g.decided(&c, o)
	return c
}

// decided is what a row has of a decision.
func (g *group) decided(c *store.Command, o *op) {
	d := &o.decision
	c.Status, c.Version = d.Status, d.Entry.Version
	c.Keep = decide.Keep{Replay: o.p.Replay, Tombstone: o.p.Tombstone, Answer: d.Answer}
	g.put(c, d.Flight, d.Code, d.Body)
	if o.leased {
		c.Status, c.Attempt, c.ClaimedBy, c.RunAt = transitions.Processing, c.Attempt+1, g.config.Node, time.Time{}
	}
}

// aimedAt is what an operation makes of another command's row.
func (g *group) aimedAt(t *decide.Target) store.Command {
	c := store.Command{Seen: t.Attempt, Was: t.Was, Keep: t.Keep, Record: transitions.Record{Scope: t.Scope, Key: t.Key, Workflow: t.Workflow,
		Status: t.Status, Version: t.Version, Attempt: t.Attempt}}
	g.put(&c, t.Flight, t.Code, t.Body)
	return c
}

// planned is the row of a command that begins in flight by itself.
func (g *group) planned(p *decide.Planned) store.Command {
	c := store.Command{Record: transitions.Record{Scope: p.Scope, Key: p.Key, Fingerprint: p.Fingerprint, Workflow: p.Workflow,
		Transition: p.Transition, Instance: p.Instance, Actor: p.Actor, CreatedAt: g.now, Status: transitions.Pending}}
	g.put(&c, &p.Flight, 0, nil)
	return c
}

// put puts a row in flight, or gives it its answer.
func (g *group) put(c *store.Command, f *decide.Flight, code int, body []byte) {
	c.UpdatedAt = g.now
	if f != nil {
		c.Phase, c.RunAt, c.Request = f.Phase, f.RunAt, f.Request
		return
	}
	c.Code, c.Body, c.FinishedAt, c.ExpiresAt = code, body, g.now, c.Keep.Until(g.config.Definitions.Horizons(c.Workflow), g.now)
}

func compareKey(scopeA, keyA, scopeB, keyB string) int {
	return cmp.Or(cmp.Compare(scopeA, scopeB), cmp.Compare(keyA, keyB))
}

// queueWrites queues the statements that write a group, kind by kind. The last
// of a kind that others may hold for long is the log's head; it alone may take
// its time, because a commit may.
func queueWrites(conn *rows.Conn, s *Statements, g *group) {
	queueStates(conn, s, g)
	if g.count() > 0 {
		conn.Queue(&s.HeadTimeout, nil, nil)
	}
	for _, set := range g.sets {
		set.queueLog(conn, s)
	}
}

// queueLog queues the statement that moves the logs and writes their rows.
func (s *sets) queueLog(conn *rows.Conn, stmts *Statements) {
	form := rows.ManyTenants
	switch len(s.moved) {
	case 0:
		return
	case 1:
		form = rows.OneTenant
	}
	list := s.moves.Params(form)
	if form == rows.OneTenant {
		list = append([][]byte{[]byte(s.moved[0].tenant)}, s.moves.Params(rows.Single)...)
	}
	conn.Queue(stmts.Log.as(form), params(list, s.entries.Params(form), s.events.Params(form)), s.readHead)
}

// readHead takes a row of the statement that moves the logs.
func (s *sets) readHead(row *rows.Row) error {
	place, base := row.Int8(), row.Int8()
	if err := row.Err(); err != nil {
		return err
	}
	t := s.moved[place-1]
	t.head = base + int64(len(t.steps))
	return nil
}

// queueProvisional queues the statements that write a command in a caller's
// transaction. It leaves the log's head alone: the trigger on the audit row
// gives both rows their position when that transaction commits, or at once if it
// has made its constraints immediate, so the audit row comes last.
func queueProvisional(conn *rows.Conn, s *Statements, g *group) {
	conn.Queue(&s.Provisional, nil, nil)
	queueStates(conn, s, g)
	for _, set := range g.sets {
		if len(set.moved) > 0 {
			conn.Queue(&s.EmitProvisional, args(set.parts, set.events), nil)
			conn.Queue(&s.AuditProvisional, args(set.parts, set.entries), nil)
		}
	}
}

// queueStates queues the writes of instances and commands.
func queueStates(conn *rows.Conn, s *Statements, g *group) {
	lease := [][]byte{int8Param(int(g.config.Lease.Microseconds()))}
	for _, set := range g.sets {
		set.queue(conn, &s.Create, &set.created.Set, nil, nil)
		set.queue(conn, &s.Change, &set.changed.Set, nil, [][]byte{int8Param(set.changed.Len())})
	}
	for _, set := range g.sets {
		set.queue(conn, &s.Disarm, &set.disarmed.Set, nil, nil)
	}
	for _, set := range g.sets {
		set.queue(conn, &s.Command, &set.commands.Set, nil, nil)
		set.queue(conn, &s.Accept, &set.accepted.Set, lease, nil)
	}
	for _, set := range g.sets {
		set.queue(conn, &s.Cancel, &set.cancelled.Set, nil, [][]byte{int8Param(set.cancelled.Len())})
	}
	for _, set := range g.sets {
		set.queue(conn, &s.Settle, &set.settled.Set, lease, [][]byte{int8Param(set.settled.Len())})
	}
}

// count is the number of transitions of the group.
func (g *group) count() (n int) {
	for _, t := range g.parts {
		n += len(t.steps)
	}
	return n
}

// keys are the distinct keys of a part, in lock order.
func (p *part) keys() []commandKey {
	list := make([]commandKey, 0, len(p.keyStates))
	for k := range p.keyStates {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b commandKey) int { return compareKey(a.scope, a.key, b.scope, b.key) })
	return list
}

func readParams(o *op) [][]byte {
	return [][]byte{[]byte(o.p.Tenant), o.p.Instance[:], []byte(o.p.Scope), []byte(o.p.Key)}
}

// params joins lists of parameters.
func params(lists ...[][]byte) [][]byte { return slices.Concat(lists...) }

func int8Param(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
