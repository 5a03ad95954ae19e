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
	s.reset()
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
	created := make([]store.Command, 0, len(t.stored)+len(t.planned))
	var settled []store.Command
	for _, o := range t.stored {
		if o.p.Resumed != nil {
			settled = append(settled, g.rowOf(o))
		} else {
			created = append(created, g.rowOf(o))
		}
		if target := o.decision.Target; target != nil {
			settled = append(settled, store.Command{Row: target.Row(g.config.Definitions.Horizons, g.now)})
		}
	}
	for i := range t.planned {
		created = append(created, store.Command{Row: t.planned[i].Row(g.now)})
	}
	into := t.sets.commands
	for i := range created {
		if created[i].Wide() {
			into = t.sets.accepted
			break
		}
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
	sorted := make([]*store.Command, len(list)) // a row is large, and sorting moves it about
	for i := range list {
		sorted[i] = &list[i]
	}
	slices.SortFunc(sorted, func(a, b *store.Command) int { return compareKey(a.Scope, a.Key, b.Scope, b.Key) })
	for _, c := range sorted {
		if err := into.Add(c); err != nil {
			return err
		}
	}
	return nil
}

// rowOf is the row of a command that was decided just now; in flight, with a worker of this
// node where one is reserved.
func (g *group) rowOf(o *op) store.Command {
	c := store.Command{Row: decide.RowOf(o.p, &o.decision, g.config.Definitions.Horizons, g.now)}
	if o.leased {
		c.Status, c.Attempt, c.ClaimedBy, c.RunAt = transitions.Processing, c.Attempt+1, g.config.Node, time.Time{}
	}
	return c
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
