package commit

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/outbox"
)

// writes reports whether the group has anything to write.
func (g *group) writes() bool {
	return slices.ContainsFunc(g.parts, func(t *part) bool { return len(t.stored) > 0 })
}

// fill turns what a part decided into rows, each table's in lock order.
func fill(g *group, t *part, s *sets) error {
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
			err = addCreated(s.created, slot.inst)
		} else {
			err = addChanged(s.changed, slot)
		}
		if err != nil {
			return err
		}
	}
	slices.SortFunc(t.stored, func(a, b *op) int {
		return cmp.Or(cmp.Compare(a.p.Scope, b.p.Scope), cmp.Compare(a.p.Key, b.p.Key))
	})
	for _, o := range t.stored {
		g.addCommand(s.commands, o)
	}
	for _, o := range t.steps {
		audit.Add(s.entries, &o.decision.Entry)
		for i := range o.decision.Events {
			outbox.Add(s.events, o.step, &o.decision.Events[i])
		}
	}
	return nil
}

// queueWrites queues everything that the group writes, kind by kind.
func (r *runner) queueWrites(g *group) error {
	for _, t := range g.parts {
		if err := fill(g, t, r.setsOf(t.tenant)); err != nil {
			return err
		}
	}
	queueWrites(r.conn, r.p.stmts, g, r.setsOf, false)
	return nil
}

// queueWrites queues the statements of many. A provisional write leaves the
// log's head alone: its positions are given when the caller's transaction
// commits.
func queueWrites(conn *rows.Conn, s *Statements, g *group, setsOf func(tenant string) *sets, provisional bool) {
	for _, t := range g.parts {
		set := setsOf(t.tenant)
		tenant := []byte(t.tenant)
		if set.created.Len() > 0 {
			conn.Queue(&s.Create, params([][]byte{tenant}, set.created.Params(true)), nil)
		}
		if n := set.changed.Len(); n > 0 {
			conn.Queue(&s.Change, params(set.changed.Params(true), [][]byte{tenant, int8Param(n)}), nil)
		}
	}
	for _, t := range g.parts {
		if set := setsOf(t.tenant); set.commands.Len() > 0 {
			conn.Queue(&s.Command, params([][]byte{[]byte(t.tenant)}, set.commands.Params(true)), nil)
		}
	}
	for _, t := range g.parts {
		n := len(t.steps)
		if n == 0 {
			continue
		}
		tenant := []byte(t.tenant)
		set := setsOf(t.tenant)
		if provisional {
			conn.Queue(&s.Provisional, nil, nil)
			conn.Queue(&s.AuditProvisional, params([][]byte{tenant}, set.entries.Params(true)), nil)
			conn.Queue(&s.EmitProvisional, params([][]byte{tenant}, set.events.Params(true)), nil)
			continue
		}
		conn.Queue(&s.Advance, [][]byte{tenant, int8Param(n)}, func(row *rows.Row) error {
			t.head = row.Int8()
			return nil
		})
	}
	if provisional {
		return
	}
	for _, t := range g.parts {
		n := len(t.steps)
		if n == 0 {
			continue
		}
		tenant := []byte(t.tenant)
		set := setsOf(t.tenant)
		base := [][]byte{int8Param(n), tenant}
		conn.Queue(&s.Audit, params([][]byte{tenant}, set.entries.Params(true), base), nil)
		conn.Queue(&s.Emit, params([][]byte{tenant}, set.events.Params(true), base), nil)
	}
}

// keys are the distinct keys of a part, in lock order.
func (p *part) keys() (scopes, keys []string) {
	list := make([]commandKey, 0, len(p.claims))
	for k := range p.claims {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b commandKey) int { return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.key, b.key)) })
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
