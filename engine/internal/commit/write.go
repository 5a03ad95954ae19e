package commit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

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
	for _, t := range g.parts {
		if err := g.fillPart(t); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) fillPart(t *part) error {
	t.sets = setsPool.Get().(*sets)
	s := t.sets
	var touched []*slot
	for _, slot := range t.slots {
		if slot.changed {
			touched = append(touched, slot)
		}
	}
	slices.SortFunc(touched, func(a, b *slot) int { return compareID(a.id, b.id) })
	for _, slot := range touched {
		var err error
		if slot.before == 0 {
			err = s.created.Add(slot.inst)
		} else {
			err = s.changed.Add(&store.Changed{Instance: slot.inst, Row: slot.row, Before: slot.before})
		}
		if err != nil {
			return err
		}
	}
	if err := g.fillCommands(t); err != nil {
		return err
	}
	for _, o := range t.steps {
		audit.Add(s.entries, &o.decision.Entry)
		for i := range o.decision.Events {
			if err := outbox.Add(s.events, o.step, &o.decision.Events[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillCommands adds the rows of commands, each statement's in the order of their
// keys.
func (g *group) fillCommands(t *part) error {
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
	into := t.sets.commands
	if slices.ContainsFunc(created, func(c store.Command) bool { return c.Wide() }) {
		into = t.sets.accepted
	}
	for i := range t.cancelled {
		t.cancelled[i].At = g.now
	}
	slices.SortFunc(t.cancelled, func(a, b store.Cancelled) int { return compareKey(a.Scope, a.Key, b.Scope, b.Key) })
	for i := range t.cancelled {
		if err := t.sets.cancelled.Add(&t.cancelled[i]); err != nil {
			return err
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(t.disarmed)) {
		if err := t.sets.disarmed.Add(&store.Disarmed{Scope: scope, Spare: t.disarmed[scope]}); err != nil {
			return err
		}
	}
	return errors.Join(addSorted(into, created), addSorted(t.sets.settled, settled))
}

func addSorted(into *store.Rows[store.Command], list []store.Command) error {
	slices.SortFunc(list, func(a, b store.Command) int { return compareKey(a.Scope, a.Key, b.Scope, b.Key) })
	for i := range list {
		if err := into.Add(&list[i]); err != nil {
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
	for _, t := range g.parts {
		if n := len(t.steps); n > 0 {
			conn.Queue(&s.Advance, [][]byte{[]byte(t.tenant), int8Param(n)}, func(row *rows.Row) error {
				t.head = row.Int8()
				return nil
			})
		}
	}
	for _, t := range g.parts {
		if n := len(t.steps); n > 0 {
			tenant := []byte(t.tenant)
			base := [][]byte{int8Param(n), tenant}
			conn.Queue(&s.Audit, params([][]byte{tenant}, t.sets.entries.Params(true), base), nil)
			conn.Queue(&s.Emit, params([][]byte{tenant}, t.sets.events.Params(true), base), nil)
		}
	}
}

// queueProvisional queues the statements that write a command in a caller's
// transaction. It leaves the log's head alone: the trigger on the audit row
// gives both rows their position when that transaction commits, or at once if it
// has made its constraints immediate, so the audit row comes last.
func queueProvisional(conn *rows.Conn, s *Statements, g *group) {
	conn.Queue(&s.Provisional, nil, nil)
	queueStates(conn, s, g)
	for _, t := range g.parts {
		if len(t.steps) > 0 {
			tenant := [][]byte{[]byte(t.tenant)}
			conn.Queue(&s.EmitProvisional, params(tenant, t.sets.events.Params(true)), nil)
			conn.Queue(&s.AuditProvisional, params(tenant, t.sets.entries.Params(true)), nil)
		}
	}
}

// queueStates queues the writes of instances and commands.
func queueStates(conn *rows.Conn, s *Statements, g *group) {
	each := func(queue func(t *part, tenant []byte)) {
		for _, t := range g.parts {
			queue(t, []byte(t.tenant))
		}
	}
	lease := int8Param(int(g.config.Lease.Microseconds()))
	each(func(t *part, tenant []byte) {
		if t.sets.created.Len() > 0 {
			conn.Queue(&s.Create, params([][]byte{tenant}, t.sets.created.Params(true)), nil)
		}
		if n := t.sets.changed.Len(); n > 0 {
			conn.Queue(&s.Change, params(t.sets.changed.Params(true), [][]byte{tenant, int8Param(n)}), nil)
		}
	})
	each(func(t *part, tenant []byte) {
		if t.sets.disarmed.Len() > 0 {
			conn.Queue(&s.Disarm, params([][]byte{tenant}, t.sets.disarmed.Params(true)), nil)
		}
	})
	each(func(t *part, tenant []byte) {
		if t.sets.commands.Len() > 0 {
			conn.Queue(&s.Command, params([][]byte{tenant}, t.sets.commands.Params(true)), nil)
		}
		if t.sets.accepted.Len() > 0 {
			conn.Queue(&s.Accept, params([][]byte{tenant, lease}, t.sets.accepted.Params(true)), nil)
		}
	})
	each(func(t *part, tenant []byte) {
		if n := t.sets.cancelled.Len(); n > 0 {
			conn.Queue(&s.Cancel, params([][]byte{tenant}, t.sets.cancelled.Params(true), [][]byte{int8Param(n)}), nil)
		}
	})
	each(func(t *part, tenant []byte) {
		if n := t.sets.settled.Len(); n > 0 {
			conn.Queue(&s.Settle, params([][]byte{tenant, lease}, t.sets.settled.Params(true), [][]byte{int8Param(n)}), nil)
		}
	})
}

// count is the number of transitions of the group.
func (g *group) count() (n int) {
	for _, t := range g.parts {
		n += len(t.steps)
	}
	return n
}

// keys are the distinct keys of a part, in lock order.
func (p *part) keys() (scopes, keys []string) {
	list := make([]commandKey, 0, len(p.keyStates))
	for k := range p.keyStates {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b commandKey) int { return compareKey(a.scope, a.key, b.scope, b.key) })
	for _, k := range list {
		scopes, keys = append(scopes, k.scope), append(keys, k.key)
	}
	return scopes, keys
}

func readParams(o *op) [][]byte {
	return [][]byte{[]byte(o.p.Tenant), o.p.Instance[:], []byte(o.p.Scope), []byte(o.p.Key)}
}

// params joins lists of parameters.
func params(lists ...[][]byte) [][]byte { return slices.Concat(lists...) }

func int8Param(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func uuidArray(ids []uuid.UUID) []byte {
	s := rows.NewSet([]rows.Column{rows.Of("id", rows.UUID)})
	for _, id := range ids {
		s.UUID(id)
	}
	return s.Params(true)[0]
}

func textArray(list []string) []byte {
	s := rows.NewSet([]rows.Column{rows.Of("text", rows.Text)})
	for _, v := range list {
		s.Text(v)
	}
	return s.Params(true)[0]
}
