package store

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// Prefixes of command.paused; the name or the id follows.
const (
	PausedWorkflow = "workflow:"
	PausedInstance = "instance:"
)

// PauseOf returns the value of command.paused for an instance.
func PauseOf(instance uuid.UUID) string { return PausedInstance + instance.String() }

// parkSQL defers paused scheduled commands that are unchanged since the poll. It locks the pause, so that its end comes before, or finds
// the deferred commands. It waits for no lock. Parameters: tenant, scopes, keys, attempts seen, now.
func parkSQL(held string) string {
	return `
UPDATE {pawl}.command AS c SET paused = u.pause
FROM (SELECT found.row, held.pause FROM unnest($2::text[], $3::text[], $4::int[]) AS u(scope, key, attempt)
	CROSS JOIN LATERAL (SELECT x.ctid AS row, x.workflow, x.instance FROM {pawl}.command AS x
		WHERE x.tenant = $1 AND x.scope = u.scope AND x.key = u.key AND x.attempt = u.attempt
			AND x.phase IS NOT DISTINCT FROM 'scheduled' AND x.run_at <= $5 AND x.paused IS NULL AND x.cancelled_by IS NULL
		LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS found
	CROSS JOIN LATERAL (` + held + `) AS held) AS u
WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM $1`
}

// ParkWorkflowSQL and ParkInstanceSQL are parkSQL for the two kinds of pauses.
var (
	ParkWorkflowSQL = parkSQL(`SELECT '` + PausedWorkflow + `' || p.workflow AS pause FROM {pawl}.paused AS p
		WHERE p.tenant = $1 AND p.workflow = found.workflow LIMIT 1 FOR SHARE SKIP LOCKED`)
	ParkInstanceSQL = parkSQL(`SELECT '` + PausedInstance + `' || one.id AS pause
		FROM (` + newest("i.id, i.paused", "$1", "found.instance") + ` FOR SHARE SKIP LOCKED) AS one WHERE one.paused`)
)

// unparked returns the assignments that make the n-th command (u.n) due after a pause: now, in the same order, so that no poll must go back
// in time. It counts as claimed before, because it could not be claimed during the pause. now is an SQL expression.
func unparked(now string) string {
	return `paused = NULL, waits_since = coalesce(c.waits_since, c.run_at), run_at = ` + now + ` - u.n * interval '1 microsecond',
	attempt = greatest(c.attempt, 1), revision = c.revision + 1, updated_at = ` + now
}

// UnparkSQL makes a batch of commands due that a workflow's pause has deferred, the earliest first, without locked ones. It returns their
// number, and when the last one was due. Parameters: tenant, pause, now, minimum due time, limit.
var UnparkSQL = `
WITH first AS MATERIALIZED (
	SELECT x.ctid AS row, x.run_at FROM {pawl}.command AS x WHERE x.paused = $2 AND x.tenant = $1
		AND NOT EXISTS (SELECT FROM {pawl}.paused AS p WHERE p.tenant = $1 AND '` + PausedWorkflow + `' || p.workflow = $2)
		AND x.run_at >= $4::timestamptz
	ORDER BY x.paused, x.tenant, x.run_at LIMIT $5::bigint FOR NO KEY UPDATE SKIP LOCKED),
numbered AS MATERIALIZED (SELECT s.row, s.run_at, row_number() OVER (ORDER BY s.run_at DESC) AS n FROM first AS s),
due AS (UPDATE {pawl}.command AS c SET ` + unparked("$3::timestamptz") + `
	FROM numbered AS u WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM $1 RETURNING 1)
SELECT (SELECT count(*) FROM due), (SELECT max(run_at) FROM numbered)`

// endedPauses lists as JSON, with the tenants, the workflows with deferred commands that are not paused, with one index probe each.
const endedPauses = `WITH RECURSIVE aside AS (
		(SELECT paused, tenant FROM {pawl}.command WHERE paused >= '` + PausedWorkflow + `' ORDER BY paused, tenant, run_at LIMIT 1)
		UNION ALL
		(SELECT next.paused, next.tenant FROM aside CROSS JOIN LATERAL (SELECT c.paused, c.tenant FROM {pawl}.command AS c
			WHERE c.paused IS NOT NULL AND (c.paused, c.tenant) > (aside.paused, aside.tenant)
			ORDER BY c.paused, c.tenant, c.run_at LIMIT 1) AS next))
	SELECT json_agg(json_build_array(a.tenant, substr(a.paused, length('` + PausedWorkflow + `') + 1))) FROM aside AS a
	WHERE NOT EXISTS (SELECT FROM {pawl}.paused AS p WHERE p.tenant = a.tenant AND '` + PausedWorkflow + `' || p.workflow = a.paused)`

// Resumed is the end of an instance's pause.
type Resumed struct {
	Pause string
	At    time.Time
}

var resumedFields = []field[Resumed]{
	text("pause", func(r *Resumed) *string { return &r.Pause }),
	moment("at", func(r *Resumed) *time.Time { return &r.At }),
}

// Resumes returns a buffer for ends of pauses.
var Resumes = rowsOf(resumedFields)

// UnparkInstances makes the commands due that pauses of locked instances have deferred. Parameters: columns.
func UnparkInstances(b *rows.Builder) {
	b.Add("UPDATE {pawl}.command AS c SET ", unparked("u.at"), " FROM (SELECT p.*, row_number() OVER (ORDER BY p.run_at DESC) AS n",
		" FROM (SELECT found.row, found.run_at, u.at, ", b.Tenant(), " AS tenant FROM ").Source(columnsOf(resumedFields)).
		Add(` CROSS JOIN LATERAL (SELECT x.ctid AS row, x.run_at FROM {pawl}.command x WHERE x.paused = u.pause AND x.tenant = `, b.Tenant(), `
	ORDER BY x.paused, x.tenant, x.run_at FOR NO KEY UPDATE) AS found) AS p) AS u
WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM u.tenant`)
}

// Park queues the deferral of scheduled commands that a pause of a workflow or of their instances holds. parked is called with their
// number.
func (f *Flights) Park(b *pgx.Batch, tenant string, now time.Time, k *Keys, workflow bool, parked func(n int64)) {
	sql := ParkInstanceSQL
	if workflow {
		sql = ParkWorkflowSQL
	}
	b.Queue(f.in(sql), tenant, k.scopes, k.keys, k.attempts, now).Exec(func(done pgconn.CommandTag) error {
		parked(done.RowsAffected())
		return nil
	})
}

// Unpark queues UnparkSQL. unparked is called with the number of commands, and when the last one was due.
func (f *Flights) Unpark(b *pgx.Batch, tenant, workflow string, now, since time.Time, batch int, unparked func(n int, last time.Time)) {
	b.Queue(f.in(UnparkSQL), tenant, PausedWorkflow+workflow, now, since, batch).QueryRow(func(row pgx.Row) error {
		var n int
		var last *time.Time
		if err := row.Scan(&n, &last); err != nil {
			return err
		}
		if last == nil {
			last = &since
		}
		unparked(n, *last)
		return nil
	})
}

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
