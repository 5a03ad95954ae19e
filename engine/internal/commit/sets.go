package commit

import (
	"slices"
	"sync"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/outbox"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// sets are what a group decided of some tenants, as rows, those of each statement in lock
// order: by tenant, and then by their keys.
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

// setsPool keeps the memory of sets.
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

// release gives the memory of the group's rows back.
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

// formOf is how a statement takes rows of these tenants.
func formOf(parts []*part) rows.Form {
	if len(parts) == 1 {
		return rows.OneTenant
	}
	return rows.ManyTenants
}

// args are the parameters of a statement that takes rows of these tenants: the tenant,
// where it is one, first and then the rows.
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
