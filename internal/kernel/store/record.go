package store

import (
	"context"
	"slices"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// requestField is omitted in lists, because requests can be large and watched commands are read repeatedly.
var (
	requestField = named(flightFields, "request")
	briefFields  = slices.Concat(doneFields, named(flightFields, "phase", "attempt", "failures", "revision", "claimed_by", "run_at",
		"updated_at"), []field[Command]{
		bigint("position", func(c *Command) *int64 { return &c.Position }).as("a.position"),
		momentOrNull("claimed_at", func(c *Command) *time.Time { return &c.ClaimedAt }),
		momentOrNull("locked_until", func(c *Command) *time.Time { return &c.LockedUntil }).as("coalesce(c.locked_until, c.held_until)"),
		raw("progress", rows.JSON, func(c *Command) *[]byte { return &c.Progress }),
		textOrNull("failure", func(c *Command) *string { return &c.Failure }),
		textOrNull("stuck", func(c *Command) *string { return &c.Stuck }),
		textOrNull("cancelled_by", func(c *Command) *string { return &c.CancelledBy }),
	})
	recordFields = slices.Concat(briefFields, requestField)

	// Of a command named c and the audit row of its transition, named a.
	recordSelect, briefSelect = selectOf(recordFields, "c"), selectOf(briefFields, "c")
)

// ReadRecord reads a command, nil for NULL columns.
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
	if c.State != "" {
		c.Body = decide.Answer(transitions.Result{Instance: c.Instance, Workflow: c.Workflow, Transition: c.Transition, State: c.State,
			Version: c.Version, At: c.FinishedAt, Result: c.Body})
	}
	if c.UpdatedAt.IsZero() {
		c.UpdatedAt = c.FinishedAt
	}
	if c.UpdatedAt.IsZero() {
		c.UpdatedAt = c.CreatedAt
	}
	return &c.Record, nil
}

// recordOfKey joins the command c of the row u, and the audit row a of its transition.
func recordOfKey(tenant string) string {
	return `
CROSS JOIN LATERAL (SELECT * FROM {pawl}.command c WHERE c.tenant = ` + tenant + ` AND c.scope = u.scope AND c.key = u.key LIMIT 1) c` +
		audit.Position(tenant)
}

var keyColumns = []rows.Column{rows.Of("scope", rows.Text), rows.Of("key", rows.Text)}

// CommandKeys returns a buffer for the scopes and keys of commands.
func CommandKeys() *rows.Set { return rows.NewSet(keyColumns) }

// FindCommands reads the existing commands of CommandKeys, each with an index probe: the index of its key, from 1, and the columns of
// ReadRecord. Parameters: the keys.
func FindCommands(b *rows.Builder) {
	b.Add("SELECT u.ord, ", recordSelect, " FROM ").Source(keyColumns).Add(recordOfKey(b.Tenant()))
}

var (
	recordSQL = `SELECT ` + recordSelect + ` FROM {pawl}.command c` + audit.Position("$1") + `
	WHERE c.tenant = $1 AND c.scope = $2 AND c.key = $3`

	// recordsSQL reads commands of any tenants, each with its index. Parameters: tenants, scopes, keys.
	recordsSQL = `SELECT ` + briefSelect + `, u.ord
	FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u(tenant, scope, key, ord)` + recordOfKey("u.tenant")

	// undoingSQL reads the undos of an instance in flight. Parameters: tenant, scope of its undos, limit.
	undoingSQL = `SELECT ` + briefSelect + ` FROM (SELECT * FROM {pawl}.command u
	WHERE u.tenant = $1 AND u.scope = $2 AND u.phase IS NOT NULL
	ORDER BY u.created_at, u.key LIMIT $3) c` + audit.Position("$1") + ` ORDER BY c.created_at, c.key`
)

// Record reads a command; by defaults to the pool. Error: CommandNotFound.
func (q *Reader) Record(ctx context.Context, by Querier, ref transitions.Ref) (transitions.Record, error) {
	if err := CheckRef(ref); err != nil {
		return transitions.Record{}, err
	}
	if by == nil {
		by = q.pool
	}
	list, err := recordsOf(ctx, by, "command", recordFields, q.in(recordSQL), ref.Tenant, ref.Scope, ref.Key)
	if err == nil && len(list) == 0 {
		err = transitions.UnknownCommand()
	}
	if err != nil {
		return transitions.Record{}, err
	}
	return list[0], nil
}

// Records reads commands of any tenants, without their requests. The result has each command at the index of its name, and nil for a
// missing one.
func (q *Reader) Records(ctx context.Context, refs []transitions.Ref) ([]*transitions.Record, error) {
	tenants, scopes, keys := make([]string, len(refs)), make([]string, len(refs)), make([]string, len(refs))
	for i, r := range refs {
		tenants[i], scopes[i], keys[i] = r.Tenant, r.Scope, r.Key
	}
	list := make([]*transitions.Record, len(refs))
	_, err := collect(ctx, q.pool, "commands", rowBy(func(row *rows.Row) (none struct{}, err error) {
		r, err := mustRecord(row, briefFields)
		if i := row.Int8(); err == nil {
			list[i-1] = &r
		}
		return none, err
	}), q.in(recordsSQL), asBinary(tenants, scopes, keys)...)
	return list, err
}

// InFlight reads the command in flight of the instance and up to most of its undos, without their requests.
func (q *Reader) InFlight(ctx context.Context, inst *transitions.Instance, most int) (list []transitions.Record, err error) {
	if ref := inst.Links.InFlight; ref != nil {
		found, err := q.Records(ctx, []transitions.Ref{{Tenant: inst.Tenant, Scope: ref.Scope, Key: ref.Key}})
		if err != nil {
			return nil, err
		}
		if r := found[0]; r != nil && r.InFlight() {
			list = append(list, *r)
		}
	}
	undos, err := recordsOf(ctx, q.pool, "undos", briefFields, q.in(undoingSQL), inst.Tenant, decide.UndoScope(inst.ID), most)
	return append(list, undos...), err
}

func recordsOf(ctx context.Context, by Querier, what string, fields []field[Command], sql string, args ...any) (
	[]transitions.Record, error,
) {
	read := rowBy(func(r *rows.Row) (transitions.Record, error) { return mustRecord(r, fields) })
	return collect(ctx, by, what, read, sql, asBinary(args...)...)
}

// mustRecord is readRecord for a row that has one.
func mustRecord(r *rows.Row, fields []field[Command]) (transitions.Record, error) {
	record, err := readRecord(r, fields)
	if err != nil {
		return transitions.Record{}, err
	}
	return *record, nil
}

// CheckRef returns CommandNotFound for a name that cannot be stored: PostgreSQL would fail the query.
func CheckRef(ref transitions.Ref) error {
	if transitions.CheckTenant(ref.Tenant) != nil || transitions.CheckScope(ref.Scope) != nil || transitions.CheckKey(ref.Key) != nil {
		return transitions.UnknownCommand()
	}
	return nil
}
