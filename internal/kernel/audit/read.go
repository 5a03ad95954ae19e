package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// Table reads the audit table of one schema.
type Table struct {
	q  rows.Querier
	in func(sql string) string
}

// New returns a Table that reads with q. in inserts the schema's name into a statement.
func New(q rows.Querier, in func(sql string) string) *Table { return &Table{q, in} }

// Position joins the position of the audit row a of a command c by a probe of the primary key. The tenant is an SQL expression.
func Position(tenant string) string {
	return ` LEFT JOIN LATERAL (SELECT a.position FROM {pawl}.audit a
	WHERE a.tenant = ` + tenant + ` AND a.instance = c.instance AND a.version = c.version LIMIT 1) a ON true`
}

// Newest joins the newest audit row a of an instance with a transition, reading back from the newest row. All are SQL expressions.
func Newest(tenant, instance, transition string) string {
	return `
LEFT JOIN LATERAL (SELECT * FROM {pawl}.audit x WHERE x.tenant = ` + tenant + ` AND x.instance = ` + instance + `
	AND x.transition = ` + transition + ` ORDER BY x.version DESC LIMIT 1) AS a ON true`
}

// RowOf joins the audit row a of a version of an instance by a probe of the primary key. All are SQL expressions.
func RowOf(tenant, instance, version string) string {
	return `
LEFT JOIN LATERAL (SELECT * FROM {pawl}.audit x WHERE x.tenant = ` + tenant + ` AND x.instance = ` + instance + `
	AND x.version = ` + version + ` LIMIT 1) AS a ON true`
}

// Rows selects the audit rows of a tenant, or of one of its instances if not "". Both are SQL expressions.
func Rows(tenant, instance string) string {
	all := "SELECT * FROM {pawl}.audit WHERE tenant = " + tenant
	if instance == "" {
		return all
	}
	return all + " AND instance = " + instance
}

// ScopeOf is an SQL expression for the scope of the command of the audit row a.
const ScopeOf = `coalesce(a.scope, a.workflow || ':' || CASE a.version WHEN 1 THEN a.transition ELSE a.instance::text END)`

// scope is ScopeOf without other tables.
var scope = strings.ReplaceAll(ScopeOf, "a.", "")

var (
	entryColumns = `version, position, workflow, transition, coalesce(from_state, ''), to_state, actor, coalesce(reason, ''),
	payload::text, data::text, ` + scope + `, key, coalesce(cause, ''), at, hash, coalesce(proof, '')`

	historySQL = `
SELECT ` + entryColumns + `
FROM {pawl}.audit
WHERE tenant = $1 AND instance = $2 AND version > $3
ORDER BY version
LIMIT $4`

	atSQL = `SELECT ` + entryColumns + ` FROM {pawl}.audit WHERE tenant = $1 AND instance = $2 AND version = $3`

	// asOfSQL reads back from the newest version. Times increase with versions, except for differences between clocks, so an index by time
	// is not worth its cost per transition.
	asOfSQL = `
SELECT ` + entryColumns + `
FROM {pawl}.audit
WHERE tenant = $1 AND instance = $2 AND at <= $3
ORDER BY version DESC
LIMIT 1`
)

// History returns up to limit entries of an instance after a version, oldest first. It ends early at [transitions.PageBytes].
func (t *Table) History(ctx context.Context, tenant string, instance uuid.UUID, after int64, limit int) (list []transitions.Entry, err error) {
	for !transitions.PageFull(list, limit) {
		rows := transitions.NextRows(transitions.EntryBytes(list), len(list), limit)
		next, err := t.entries(ctx, tenant, instance, historySQL, after, rows)
		if err != nil {
			return nil, err
		}
		if list = append(list, next...); len(next) < rows {
			break
		}
		after = list[len(list)-1].Version
	}
	return list, nil
}

// At returns the entry that made a version of an instance, if it exists.
func (t *Table) At(ctx context.Context, tenant string, instance uuid.UUID, version int64) ([]transitions.Entry, error) {
	return t.entries(ctx, tenant, instance, atSQL, version)
}

// AsOf returns the newest entry of an instance that is not later than a time, in microseconds, if one exists.
func (t *Table) AsOf(ctx context.Context, tenant string, instance uuid.UUID, at time.Time) ([]transitions.Entry, error) {
	return t.entries(ctx, tenant, instance, asOfSQL, at.Truncate(time.Microsecond))
}

func (t *Table) entries(ctx context.Context, tenant string, instance uuid.UUID, sql string, args ...any) ([]transitions.Entry, error) {
	// Planned at each execution: a plan for an almost empty table would scan a full one.
	rows, err := t.q.Query(ctx, t.in(sql), append([]any{pgx.QueryExecModeCacheDescribe, tenant, instance}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer rows.Close()
	var entries []transitions.Entry
	for size := 0; size < transitions.PageBytes && rows.Next(); {
		e := transitions.Entry{Tenant: tenant, Instance: instance}
		var hash []byte
		if err := rows.Scan(&e.Version, &e.Position, &e.Workflow, &e.Transition, &e.From, &e.To, &e.Actor, &e.Reason,
			&e.Payload, &e.Data, &e.Scope, &e.Key, &e.Cause, &e.At, &hash, &e.Proof); err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		copy(e.Hash[:], hash)
		e.At = e.At.UTC()
		size += len(e.Payload) + len(e.Data)
		entries = append(entries, e)
	}
	if rows.Close(); rows.Err() != nil {
		return nil, fmt.Errorf("read history: %w", rows.Err())
	}
	return entries, nil
}
