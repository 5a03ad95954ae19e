package store

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Command is the row of a command as the pipeline writes it. With ClaimedBy its lease starts when the row is written.
type Command struct {
	decide.Row

	// State is the state after the transition if the answer is rendered from the row. Body is then only the result, until the row is read.
	State workflow.State
}

// The columns of a new command without the tenant. The row of a completed command without a tombstone period has only doneFields;
// acceptedFields has all.
var (
	doneFields = []field[Command]{
		text("scope", func(c *Command) *string { return &c.Scope }),
		text("key", func(c *Command) *string { return &c.Key }),
		hash("fingerprint", func(c *Command) *[32]byte { return &c.Fingerprint }),
		text("status", func(c *Command) *transitions.Status { return &c.Status }),
		text("workflow", func(c *Command) *string { return &c.Workflow }),
		text("transition", func(c *Command) *string { return &c.Transition }),
		id("instance", func(c *Command) *uuid.UUID { return &c.Instance }),
		bigintOrNull("version", func(c *Command) *int64 { return &c.Version }),
		text("actor", func(c *Command) *string { return &c.Actor }),
		smallintOrNull("code", func(c *Command) *int { return &c.Code }),
		textOrNull("state", func(c *Command) *workflow.State { return &c.State }),
		raw("body", rows.Text, func(c *Command) *[]byte { return &c.Body }),
		moment("created_at", func(c *Command) *time.Time { return &c.CreatedAt }),
		momentOrNull("finished_at", func(c *Command) *time.Time { return &c.FinishedAt }),
		momentOrNull("expires_at", func(c *Command) *time.Time { return &c.ExpiresAt }),
	}
	flightFields = []field[Command]{
		textOrNull("phase", func(c *Command) *transitions.Phase { return &c.Phase }),
		inFlight(integer("attempt", func(c *Command) *int { return &c.Attempt })),
		inFlight(integer("failures", func(c *Command) *int { return &c.Failures })),
		inFlight(integer("revision", func(c *Command) *int { return &c.Revision })),
		textOrNull("claimed_by", func(c *Command) *string { return &c.ClaimedBy }),
		momentOrNull("run_at", func(c *Command) *time.Time { return &c.RunAt }),
		raw("request", rows.JSON, func(c *Command) *[]byte { return &c.Request }),
		inFlight(momentOrNull("updated_at", func(c *Command) *time.Time { return &c.UpdatedAt })),
		integerOrNull("definition", func(c *Command) *int { return &c.Definition }),
		forgetField,
	}
	acceptedFields = slices.Concat(doneFields, flightFields)
	seenFields     = []field[Command]{
		integer("seen", func(c *Command) *int { return &c.Seen }),
		text("was", func(c *Command) *transitions.Status { return &c.Was }),
		integer("attempt", func(c *Command) *int { return &c.Attempt }),
		moment("updated_at", func(c *Command) *time.Time { return &c.UpdatedAt }),
	}
	settledFields = slices.Concat(seenFields, named(acceptedFields, "scope", "key", "status", "version", "code", "body",
		"finished_at", "expires_at", "phase", "claimed_by", "run_at", "request", "definition", "forget_at"))
	cancelledFields = []field[Cancelled]{
		text("scope", func(c *Cancelled) *string { return &c.Scope }),
		text("key", func(c *Cancelled) *string { return &c.Key }),
		text("actor", func(c *Cancelled) *string { return &c.By }),
		moment("at", func(c *Cancelled) *time.Time { return &c.At }),
	}
	dueFields = []field[Due]{
		text("scope", func(d *Due) *string { return &d.Scope }),
		text("key", func(d *Due) *string { return &d.Key }),
		moment("at", func(d *Due) *time.Time { return &d.At }),
	}
	disarmedFields = []field[Disarmed]{
		text("scope", func(d *Disarmed) *string { return &d.Scope }),
		text("spare", func(d *Disarmed) *string { return &d.Spare }),
	}
)

// inFlight makes a column NULL for completed commands.
func inFlight(f field[Command]) field[Command] {
	add := f.add
	f.add = func(s *rows.Set, c *Command) error {
		if c.Phase == "" {
			s.Null()
			return nil
		}
		return add(s, c)
	}
	return f
}

// forgetField is when the tombstone is deleted, if its period was requested.
var forgetField = field[Command]{Column: rows.Of("forget_at", rows.Timestamptz), add: func(s *rows.Set, c *Command) error {
	switch {
	case c.Phase != "" || c.Keep.Tombstone == 0:
		s.Null()
	case c.Keep.Tombstone == workflow.Forever:
		s.Infinity()
	default:
		s.Time(c.ExpiresAt.Add(c.Keep.Tombstone))
	}
	return nil
}}

// Wide reports whether the row has columns that only AcceptCommands writes.
func (c *Command) Wide() bool { return c.Phase != "" || c.Keep.Tombstone != 0 }

// Cancelled is a command in flight that is asked to stop.
type Cancelled struct {
	transitions.CommandRef
	By string
	At time.Time
}

// Disarmed is a scope whose undecided commands are void, except one key.
type Disarmed struct{ Scope, Spare string }

// Due is a scheduled command that becomes due earlier.
type Due struct {
	transitions.CommandRef
	At time.Time
}

// Constructors of row buffers.
var (
	Done     = rowsOf(doneFields)      // new commands with an answer, none of them wide
	Accepted = rowsOf(acceptedFields)  // new commands, some of them wide
	Settled  = rowsOf(settledFields)   // updates of commands in flight
	Cancels  = rowsOf(cancelledFields) // requests to stop
	Dues     = rowsOf(dueFields)       // scheduled commands that become due
	Disarms  = rowsOf(disarmedFields)  // scopes
)

// InsertCommands inserts completed commands. from is a row source with a single row, or "". Parameters: columns.
func InsertCommands(b *rows.Builder, from string) {
	names := rows.Names(columnsOf(doneFields))
	b.Add("INSERT INTO {pawl}.command (tenant, ", names, ") SELECT ", b.Tenant(), ", ", names, " FROM ").Source(columnsOf(doneFields))
	if from != "" {
		b.Add(", ", from)
	}
}

// AcceptCommands inserts commands, some of them wide. A lease is timed by the database's clock. Parameters: length of a lease in
// microseconds, columns.
func AcceptCommands(b *rows.Builder) {
	names := rows.Names(columnsOf(acceptedFields))
	b.Add("INSERT INTO {pawl}.command (tenant, claimed_at, locked_until, ", names, ") SELECT ", b.Tenant(),
		", CASE WHEN claimed_by IS NOT NULL THEN clock_timestamp() END, CASE WHEN claimed_by IS NOT NULL THEN clock_timestamp() + ").
		Param(rows.Int8, false).Add(" * interval '1 microsecond' END, ", names, " FROM ").Source(columnsOf(acceptedFields))
}

// found joins the source u to its commands, each with a probe of the key, and locks them.
func found(b *rows.Builder) string {
	return ` CROSS JOIN LATERAL (SELECT x.ctid AS row FROM {pawl}.command x WHERE x.tenant = ` + b.Tenant() + ` AND x.scope = u.scope
	AND x.key = u.key LIMIT 1 FOR NO KEY UPDATE) AS found`
}

// SettleCommands updates commands in flight in the order of their keys. If one has changed since it was read, the transaction fails and
// runs again. Parameters: length of a lease in microseconds, columns, number of rows.
func SettleCommands(b *rows.Builder) {
	b.Add(`WITH settled AS (UPDATE {pawl}.command AS c SET status = u.status, code = u.code, body = u.body,
	version = CASE WHEN u.phase IS NULL THEN u.version ELSE coalesce(u.version, c.version) END,
	finished_at = u.finished_at, expires_at = u.expires_at, phase = u.phase, attempt = u.attempt,
	failures = CASE WHEN u.phase IS NULL THEN c.failures ELSE 0 END, revision = c.revision + 1,
	stuck = NULL, unsure = NULL, waits_since = NULL, claimed_by = coalesce(u.claimed_by, c.claimed_by),
	claimed_at = CASE WHEN u.claimed_by IS NULL THEN c.claimed_at ELSE clock_timestamp() END,
	locked_until = CASE WHEN u.claimed_by IS NOT NULL THEN clock_timestamp() + u.lease * interval '1 microsecond' END,
	run_at = u.run_at, request = u.request, updated_at = u.updated_at, forget_at = u.forget_at,
	definition = coalesce(u.definition, c.definition)
FROM (SELECT found.row, t.lease, u.* FROM (SELECT `).Param(rows.Int8, false).Add(" AS lease) AS t, ").Source(columnsOf(settledFields)).
		Add(found(b), `) AS u
WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM `, b.Tenant(), ` AND c.attempt = u.seen AND c.status = u.was RETURNING 1)
SELECT {pawl}.expect(count(*), `).Param(rows.Int8, false).Add(") FROM settled")
}

// CancelCommands requests that commands in flight stop. Running workers observe the request; waiting commands become due. Parameters:
// columns, number of rows.
func CancelCommands(b *rows.Builder) {
	b.Add(`WITH cancelled AS (UPDATE {pawl}.command AS c SET cancelled_by = u.actor, revision = c.revision + 1, stuck = NULL, paused = NULL,
	run_at = CASE WHEN c.status = 'processing' THEN NULL ELSE u.at END, updated_at = u.at
FROM (SELECT found.row, u.* FROM `).Source(columnsOf(cancelledFields)).Add(found(b), `) AS u
WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM `, b.Tenant(), ` AND c.phase IS NOT NULL RETURNING 1)
SELECT {pawl}.expect(count(*), `).Param(rows.Int8, false).Add(") FROM cancelled")
}

// MakeDue makes scheduled commands due that wait for a later time. The others stay as they are. Parameters: columns.
func MakeDue(b *rows.Builder) {
	b.Add(`UPDATE {pawl}.command AS c SET run_at = u.at, revision = c.revision + 1, updated_at = u.at
FROM (SELECT found.row, u.* FROM `).Source(columnsOf(dueFields)).Add(found(b), `) AS u
WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM `, b.Tenant(), `
	AND c.phase IS NOT DISTINCT FROM 'scheduled' AND c.run_at > u.at`)
}

// DisarmCommands deletes the undecided commands of some scopes, except one key each. Parameters: columns.
func DisarmCommands(b *rows.Builder) {
	b.Add("DELETE FROM {pawl}.command AS c USING (SELECT found.row, ", b.Tenant(), " AS tenant FROM ").Source(columnsOf(disarmedFields)).
		Add(` CROSS JOIN LATERAL (SELECT x.ctid AS row FROM {pawl}.command x WHERE x.tenant = `, b.Tenant(), ` AND x.scope = u.scope
	AND x.key <> u.spare AND x.phase = 'scheduled' AND x.phase || '' = 'scheduled' FOR UPDATE) AS found) AS u
	WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM u.tenant`)
}
