package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
)

// stuckSQL reads a page of the commands that wait for an operator, without their requests, by the index of only those, or of an instance.
// The instance of a creation does not exist yet.
var stuckSQL = `SELECT ` + briefSelect + `, c.request->>'reason', c.request->>'proof',
	coalesce(i.business_key, c.request->>'business_key', '')
FROM (SELECT * FROM {pawl}.command s
	WHERE s.tenant = $1 AND s.stuck IS NOT NULL AND (s.updated_at, s.scope, s.key) > ($2, $3, $4) AND ($5 = '' OR s.workflow = $5)
		AND ($6::uuid IS NULL OR s.instance = $6)
	ORDER BY s.updated_at, s.scope, s.key LIMIT $7) c` + audit.Position("$1") + BusinessKey("$1", "c.instance") + `
ORDER BY c.updated_at, c.scope, c.key`

// Stuck lists the commands that wait for an operator, the longest waiting first. The filter requires a tenant and a limit, and takes an
// instance instead of a business key.
func (q *Reader) Stuck(ctx context.Context, f inspect.StuckFilter) (list []transitions.Record, more bool, err error) {
	list, err = collect(ctx, q.pool, "stuck commands", rowBy(func(row *rows.Row) (transitions.Record, error) {
		r, err := mustRecord(row, briefFields)
		r.Reason, r.Proof, r.BusinessKey = row.Text(), row.Text(), row.Text()
		return r, err
	}), q.in(stuckSQL), asBinary(f.Tenant, f.After.UpdatedAt, f.After.Scope, f.After.Key, f.Workflow, orNull(f.Instance), f.Limit+1)...)
	more = len(list) > f.Limit
	return list[:min(len(list), f.Limit)], more, err
}

// pausedInstancesSQL reads paused instances by their index, each with the audit row of its pause.
func pausedInstancesSQL(f *inspect.PausedFilter) *query {
	s := &query{}
	s.WriteString("SELECT i.workflow, i.id, coalesce(i.business_key, ''), i.state, coalesce(a.actor, ''), coalesce(a.reason, ''), a.at" +
		" FROM (SELECT * FROM {pawl}.instance WHERE paused")
	s.add(" AND tenant = %s AND (workflow, id) > (%s, %s)", f.Tenant, f.After.Workflow, f.After.Instance)
	if f.Workflow != "" {
		s.add(" AND workflow = %s", f.Workflow)
	}
	s.add(" ORDER BY workflow, id LIMIT %s) AS i"+audit.Newest("$1", "i.id", "%s")+" ORDER BY i.workflow, i.id", f.Limit+1, decide.PausedEntry)
	return s
}

// PausedInstances lists the instances that are paused themselves, and reports whether there are more.
func (q *Reader) PausedInstances(ctx context.Context, f inspect.PausedFilter) (list []inspect.PausedInstance, more bool, err error) {
	err = q.listing(ctx, "paused instances", func(l *lister) error {
		found, _ := l.query(ctx, pausedInstancesSQL(&f)) // CollectRows returns its error
		list, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (p inspect.PausedInstance, err error) {
			var at *time.Time
			err = row.Scan(&p.Workflow, &p.Instance, &p.BusinessKey, &p.State, &p.Actor, &p.Reason, &at)
			p.At = timeOf(at)
			return p, err
		})
		return err
	})
	more = len(list) > f.Limit
	return list[:min(len(list), f.Limit)], more, err
}
