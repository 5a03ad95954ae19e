package commit

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

func (g *group) writes() bool {
	return slices.ContainsFunc(g.parts, func(t *part) bool { return len(t.stored) > 0 })
}

// fill converts the decisions of the group into rows, in lock order.
func (g *group) fill() error {
	for _, span := range g.spans() {
		s := setsPool.Get().(*sets)
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
		switch {
		case slot.before == 0:
			err = s.created.Add(t.tenant, slot.inst)
		case slot.definition != slot.inst.Definition:
			err = s.migrated.Add(t.tenant, &store.Changed{Instance: slot.inst, Row: slot.row, Before: slot.before})
		default:
			err = s.changed.Add(t.tenant, &store.Changed{Instance: slot.inst, Row: slot.row, Before: slot.before})
		}
		if err != nil {
			return err
		}
	}
	if err := g.fillCommands(s, t); err != nil {
		return err
	}
	// Add the tenant's transitions. The steps of the events count the transitions of all tenants of the statement.
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

// fillCommands adds the rows of commands, each statement's in the order of their keys.
func (g *group) fillCommands(s *sets, t *part) error {
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
	into := s.commands
	for i := range created {
		if created[i].Wide() {
			into = s.accepted
			break
		}
	}
	for i := range t.cancelled {
		t.cancelled[i].At = g.now
	}
	var pauses []store.Resumed
	for _, id := range t.resumed {
		pauses = append(pauses, store.Resumed{Pause: store.PauseOf(id), At: g.now})
	}
	var disarmed []store.Disarmed
	for scope, spare := range t.disarmed {
		disarmed = append(disarmed, store.Disarmed{Scope: scope, Spare: spare})
	}
	byKey := func(a, b *store.Command) int { return compareKey(a.Scope, a.Key, b.Scope, b.Key) }
	return errors.Join(
		addSorted(s.cancelled, t, t.cancelled, func(a, b *store.Cancelled) int { return compareKey(a.Scope, a.Key, b.Scope, b.Key) }),
		addSorted(s.due, t, t.due, func(a, b *store.Due) int { return compareKey(a.Scope, a.Key, b.Scope, b.Key) }),
		addSorted(s.migratedFlights, t, t.migrated, func(a, b *store.MigratedFlights) int { return bytes.Compare(a.Instance[:], b.Instance[:]) }),
		addSorted(s.resumed, t, pauses, func(a, b *store.Resumed) int { return strings.Compare(a.Pause, b.Pause) }),
		addSorted(s.disarmed, t, disarmed, func(a, b *store.Disarmed) int { return strings.Compare(a.Scope, b.Scope) }),
		addSorted(into, t, created, byKey),
		addSorted(s.settled, t, settled, byKey))
}

// addSorted adds rows of a tenant in lock order. It sorts pointers, because rows are large.
func addSorted[T any](into *store.Rows[T], t *part, list []T, compare func(a, b *T) int) error {
	sorted := make([]*T, len(list))
	for i := range list {
		sorted[i] = &list[i]
	}
	slices.SortFunc(sorted, compare)
	for _, row := range sorted {
		if err := into.Add(t.tenant, row); err != nil {
			return err
		}
	}
	return nil
}

// rowOf returns the row of a decided command, leased if a worker of this node is reserved.
func (g *group) rowOf(o *op) store.Command {
	c := store.Command{Row: decide.RowOf(o.p, &o.decision, g.config.Definitions.Horizons, g.now)}
	if d := &o.decision; o.p.Resumed == nil && d.Plain && d.Flight == nil {
		c.State, c.Body = d.After.State, d.Result
	}
	if o.leased {
		c.Status, c.Attempt, c.ClaimedBy, c.RunAt = transitions.Processing, c.Attempt+1, g.config.Node, time.Time{}
	}
	return c
}

func compareKey(scopeA, keyA, scopeB, keyB string) int {
	return cmp.Or(cmp.Compare(scopeA, scopeB), cmp.Compare(keyA, keyB))
}

// queueWrites queues the statements of a group by kind. The last kind that others may lock for long is the log's head, with a timeout of
// its own.
func queueWrites(conn *rows.Conn, s *Statements, g *group) {
	queueStates(conn, s, g)
	if g.count() > 0 {
		conn.Queue(&s.HeadTimeout, nil, nil)
	}
	for _, set := range g.sets {
		switch list := set.moves; len(set.moved) {
		case 0:
		case 1:
			tenant := [][]byte{[]byte(set.moved[0].tenant)}
			conn.Queue(&s.Log.One, params(tenant, list.Params(rows.Single), set.entries.Params(rows.OneTenant),
				set.events.Params(rows.OneTenant)), set.readHead)
		default:
			conn.Queue(&s.Log.Many, params(list.Params(rows.ManyTenants), set.entries.Params(rows.ManyTenants),
				set.events.Params(rows.ManyTenants)), set.readHead)
		}
	}
}

// readHead reads a result row of the statement that moves the logs.
func (s *sets) readHead(row *rows.Row) error {
	place, base := row.Int8(), row.Int8()
	if err := row.Err(); err != nil {
		return err
	}
	t := s.moved[place-1]
	t.head = base + int64(len(t.steps))
	return nil
}

// queueStates queues the writes of instances and commands.
func queueStates(conn *rows.Conn, s *Statements, g *group) {
	lease := [][]byte{int8Param(int(g.config.Lease.Microseconds()))}
	for _, set := range g.sets {
		set.queue(conn, &s.Create, &set.created.Set, nil, nil)
		set.queue(conn, &s.Change, &set.changed.Set, nil, [][]byte{int8Param(set.changed.Len())})
		set.queue(conn, &s.Migrate, &set.migrated.Set, nil, [][]byte{int8Param(set.migrated.Len())})
	}
	for _, set := range g.sets {
		set.queue(conn, &s.Disarm, &set.disarmed.Set, nil, nil)
	}
	for _, set := range g.sets {
		set.queue(conn, &s.Resume, &set.resumed.Set, nil, nil)
	}
	for _, set := range g.sets {
		set.queue(conn, &s.Due, &set.due.Set, nil, nil)
	}
	for _, set := range g.sets {
		set.queue(conn, &s.MigrateFlights, &set.migratedFlights.Set, nil, nil)
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

func (g *group) count() (n int) {
	for _, t := range g.parts {
		n += len(t.steps)
	}
	return n
}

// keys returns the distinct keys of a part in lock order.
func (t *part) keys() []commandKey {
	list := make([]commandKey, 0, len(t.keyStates))
	for k := range t.keyStates {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b commandKey) int { return compareKey(a.scope, a.key, b.scope, b.key) })
	return list
}

func params(lists ...[][]byte) [][]byte { return slices.Concat(lists...) }

func int8Param(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// sets holds the rows to write for some tenants, in lock order: by tenant, then by key.
type sets struct {
	parts                       []*part
	created                     *store.Rows[transitions.Instance]
	changed, migrated           *store.Rows[store.Changed]
	commands, accepted, settled *store.Rows[store.Command]
	cancelled                   *store.Rows[store.Cancelled]
	disarmed                    *store.Rows[store.Disarmed]
	due                         *store.Rows[store.Due]
	resumed                     *store.Rows[store.Resumed]
	migratedFlights             *store.Rows[store.MigratedFlights]
	moves, entries, events      *rows.Set
	moved                       []*part // those with moves
}

var setsPool = sync.Pool{New: func() any {
	return &sets{
		created:         store.Created(),
		changed:         store.Changes(),
		migrated:        store.Migrations(),
		commands:        store.Done(),
		accepted:        store.Accepted(),
		settled:         store.Settled(),
		cancelled:       store.Cancels(),
		disarmed:        store.Disarms(),
		due:             store.Dues(),
		resumed:         store.Resumes(),
		migratedFlights: store.FlightMigrations(),
		moves:           outbox.Moves(),
		entries:         rows.NewSet(audit.Columns),
		events:          rows.NewSet(outbox.Columns),
	}
}}

// release returns the memory of the rows to the pool.
func (g *group) release() {
	for _, s := range g.sets {
		clear(s.moved)
		s.parts, s.moved = nil, s.moved[:0]
		s.reset()
		setsPool.Put(s)
	}
	g.sets = nil
}

func (s *sets) reset() {
	for _, set := range []*rows.Set{&s.created.Set, &s.changed.Set, &s.migrated.Set, &s.commands.Set, &s.accepted.Set,
		&s.settled.Set, &s.cancelled.Set, &s.disarmed.Set, &s.due.Set, &s.resumed.Set, &s.migratedFlights.Set, s.moves, s.entries, s.events} {
		set.Reset()
	}
}

func formOf(parts []*part) rows.Form {
	if len(parts) == 1 {
		return rows.OneTenant
	}
	return rows.ManyTenants
}

// args returns the parameters of a statement for rows of these tenants: the tenant if there is only one, first, and the rows.
func args(parts []*part, set *rows.Set, first ...[]byte) [][]byte {
	form := formOf(parts)
	if form == rows.ManyTenants {
		return slices.Concat(first, set.Params(form))
	}
	return slices.Concat([][]byte{[]byte(parts[0].tenant)}, first, set.Params(form))
}

// queue queues a statement that writes one of the sets, if it has rows. before and after are parameters in front of and behind the columns.
func (s *sets) queue(conn *rows.Conn, f *Forms, set *rows.Set, before, after [][]byte) {
	if set.Len() > 0 {
		conn.Queue(f.of(s.parts), slices.Concat(args(s.parts, set, before...), after), nil)
	}
}
