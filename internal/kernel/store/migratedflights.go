package store

import (
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// MigratedFlights is a migrated instance with the location of its commands in flight.
type MigratedFlights struct {
	Instance         uuid.UUID
	Definition       int
	Timers, TimerEnd string // the first scope of a timer, and the first one after those
	Undos            string // the scope of its undos
	Scope, Key       string // of the command whose activity is in flight; "" none
}

// MigratedFlightsOf returns the MigratedFlights of an instance.
func MigratedFlightsOf(i *transitions.Instance) MigratedFlights {
	first := decide.TimerScope(i.ID, "")
	m := MigratedFlights{Instance: i.ID, Definition: i.Definition, Timers: first, TimerEnd: afterScopes(first), Undos: decide.UndoScope(i.ID)}
	if working := i.Links.InFlight; working != nil {
		m.Scope, m.Key = working.Scope, working.Key
	}
	return m
}

// afterScopes returns the first scope after those with a prefix that ends in ":".
func afterScopes(prefix string) string { return strings.TrimSuffix(prefix, ":") + ";" }

var migratedFlightFields = []field[MigratedFlights]{
	id("instance", func(m *MigratedFlights) *uuid.UUID { return &m.Instance }),
	integer("definition", func(m *MigratedFlights) *int { return &m.Definition }),
	text("timers", func(m *MigratedFlights) *string { return &m.Timers }),
	text("timer_end", func(m *MigratedFlights) *string { return &m.TimerEnd }),
	text("undos", func(m *MigratedFlights) *string { return &m.Undos }),
	text("scope", func(m *MigratedFlights) *string { return &m.Scope }),
	text("key", func(m *MigratedFlights) *string { return &m.Key }),
}

// FlightMigrations returns a buffer for MigratedFlights.
var FlightMigrations = rowsOf(migratedFlightFields)

// MigrateFlights sets the definition of the commands in flight on migrated instances: timers, scheduled commands, undos, and the activity.
// Otherwise nodes that know only the new version would skip them. The instances are locked. Parameters: columns.
func MigrateFlights(b *rows.Builder) {
	each := func(where string) string {
		return "SELECT * FROM (SELECT x.ctid AS row FROM {pawl}.command x WHERE x.tenant = " + b.Tenant() + " AND " + where +
			" FOR NO KEY UPDATE) AS f"
	}
	b.Add("UPDATE {pawl}.command AS c SET definition = u.definition FROM (SELECT found.row, u.definition, ", b.Tenant(), " AS tenant FROM ").
		Source(columnsOf(migratedFlightFields)).Add(" CROSS JOIN LATERAL (",
		each("x.scope >= u.timers AND x.scope < u.timer_end AND x.phase || '' = 'scheduled'"), "\n\tUNION ALL ",
		each("x.instance = u.instance AND x.phase = 'scheduled' AND NOT starts_with(x.scope, '"+transitions.Reserved+"')"),
		"\n\tUNION ALL ", each("x.scope = u.undos AND x.phase IS NOT NULL"),
		"\n\tUNION ALL ", each("x.scope = u.scope AND x.key = u.key AND x.phase IS NOT NULL LIMIT 1"),
		`) AS found) AS u
	WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM u.tenant`)
}
