package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
)

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
