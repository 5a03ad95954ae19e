package store

import (
	"time"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/internal/rows"
	"github.com/pawlhq/pawl/transitions"
)

// requestField leads, so that lists can do without it: requests can be large, never
// change, and are read again and again while somebody watches.
var (
	requestField = named(flightFields, "request")
	briefFields  = append(append(doneFields[:len(doneFields):len(doneFields)], named(flightFields, "phase", "attempt", "failures", "revision", "claimed_by", "run_at", "updated_at")...),
		bigint("position", func(c *Command) *int64 { return &c.Position }).as("a.position"),
		momentOrNull("claimed_at", func(c *Command) *time.Time { return &c.ClaimedAt }),
		momentOrNull("locked_until", func(c *Command) *time.Time { return &c.LockedUntil }).as("coalesce(c.locked_until, c.held_until)"),
		raw("progress", rows.JSON, func(c *Command) *[]byte { return &c.Progress }),
		textOrNull("failure", func(c *Command) *string { return &c.Failure }),
		textOrNull("stuck", func(c *Command) *string { return &c.Stuck }),
		textOrNull("cancelled_by", func(c *Command) *string { return &c.CancelledBy }),
	)
	recordFields = append(briefFields[:len(briefFields):len(briefFields)], requestField...)

	// Of a command named c and the audit row of its transition, named a.
	recordSelect, briefSelect = selectOf(recordFields, "c"), selectOf(briefFields, "c")
)

// ReadRecord reads a command; nil when the row is not there. Its error is that of the row.
func ReadRecord(r *rows.Row) (*transitions.Record, error) { return readRecord(r, recordFields) }

func readRecord(r *rows.Row, fields []field[Command]) (*transitions.Record, error) {
	if r.IsNull() {
		r.Skip(len(fields))
		return nil, r.Err()
	}
	var c Command
	if err := readAll(fields, r, &c); err != nil {
		return nil, err
	}
	if c.UpdatedAt.IsZero() {
		c.UpdatedAt = c.FinishedAt
	}
	if c.UpdatedAt.IsZero() {
		c.UpdatedAt = c.CreatedAt
	}
	return &c.Record, nil
}

// FindCommands finds the commands of many keys, each with an index probe: see
// ReadRecord. Parameters: tenant, scopes, keys.
func FindCommands(b *rows.Builder) {
	b.Add("SELECT ", recordSelect, " FROM (SELECT ").Param(rows.Text, false).Add(" AS tenant) t, unnest(").Param(rows.Text, true).Add(", ").Param(rows.Text, true).
		Add(") AS u(scope, key) CROSS JOIN LATERAL (SELECT * FROM pawl.command c WHERE c.tenant = $1 AND c.scope = u.scope AND c.key = u.key LIMIT 1) c",
			audit.Position)
}
