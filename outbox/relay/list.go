package relay

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Sinks lists the sinks by name. With a tenant, it lists the sinks that receive its events, and
// Behind, Lag, Oldest, Stuck, DeadLetters and Aside only count this tenant's. Without one it reads
// the last positions of all logs.
func (t *Table) Sinks(ctx context.Context, tenant string) ([]inspect.SinkInfo, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return nil, err
	}
	return collect(ctx, t, "sinks", infosSQL, func(row pgx.CollectableRow) (i inspect.SinkInfo, err error) {
		var since, ends, pausedAt, failedAt, oldest *time.Time
		var p inspect.SinkPause
		err = row.Scan(&i.Name, &i.Tenants, &i.Node, &since, &ends, &pausedAt, &p.By, &p.Reason, &i.Failures, &i.Failure, &failedAt,
			&i.Delivered, &i.Failed, &i.Parked, &i.Behind, &i.Lag, &oldest, &i.Stuck, &i.DeadLetters, &i.Aside)
		i.Since, i.LeaseEnds, i.FailedAt, i.Oldest = timeOf(since), timeOf(ends), timeOf(failedAt), timeOf(oldest)
		if pausedAt != nil {
			p.At = timeOf(pausedAt)
			i.Paused = &p
		}
		return i, err
	}, tenant)
}

// Deliverer is a sink and the node that delivers to it.
type Deliverer struct{ Sink, Node string }

// Deliverers lists the sinks that a node delivers to, by name. With a tenant, it lists those that
// receive its events.
func (t *Table) Deliverers(ctx context.Context, tenant string) ([]Deliverer, error) {
	if err := transitions.CheckTenant(tenant); err != nil {
		return nil, err
	}
	return collect(ctx, t, "sinks", nodesSQL, pgx.RowToStructByPos[Deliverer], tenant)
}

// Cursors lists the cursors of a sink by tenant and reports whether there are more.
func (t *Table) Cursors(ctx context.Context, f inspect.CursorFilter) (list []inspect.SinkCursor, more bool, err error) {
	if err := cmp.Or(transitions.CheckTenant(f.Tenant), transitions.CheckTenant(f.After)); err != nil {
		return nil, false, err
	}
	if _, err := t.checkKnown(ctx, f.Sink); err != nil {
		return nil, false, err
	}
	return collectPage(ctx, t, "cursors", cursorsSQL, f.Limit, func(row pgx.CollectableRow) (c inspect.SinkCursor, err error) {
		var oldest, updated, movedAt *time.Time
		var from *int64
		var m inspect.CursorMove
		err = row.Scan(&c.Sink, &c.Tenant, &c.Position, &c.Head, &c.Lag, &oldest, &c.Failure, &updated, &from, &movedAt, &m.By, &m.Reason)
		c.Oldest, c.Updated = timeOf(oldest), timeOf(updated)
		if from != nil {
			m.From, m.At = *from, timeOf(movedAt)
			c.Moved = &m
		}
		return c, err
	}, f.Sink, f.Tenant, f.After)
}

// DeadLetters lists dead letters by tenant, instance and position and reports whether there are
// more.
func (t *Table) DeadLetters(ctx context.Context, f inspect.DeadFilter, p inspect.DeadPage) (
	list []inspect.DeadLetter, more bool, err error) {
	if err := cmp.Or(checkFilter(&f), transitions.CheckTenant(p.After.Tenant)); err != nil {
		return nil, false, err
	}
	if _, err := t.checkKnown(ctx, f.Sink); err != nil {
		return nil, false, err
	}
	a := p.After
	return collectPage(ctx, t, "dead letters", deadSQL, p.Limit, func(row pgx.CollectableRow) (d inspect.DeadLetter, err error) {
		err = row.Scan(&d.Sink, &d.Tenant, &d.Position, &d.Type, &d.Ordinal, &d.Workflow, &d.Instance, &d.BusinessKey, &d.Status, &d.Kind,
			&d.Failure, &d.Attempts, &d.Created, &d.Updated, &d.By, &d.Reason)
		d.Created, d.Updated = d.Created.UTC(), d.Updated.UTC()
		return d, err
	}, append(argsOf(&f), a.Tenant, a.Instance, a.Position, a.Ordinal)...)
}

// checkKnown returns the time, or an error if a sink does not exist.
func (t *Table) checkKnown(ctx context.Context, sink string) (now time.Time, err error) {
	if err := checkText("sink", sink, 255); err != nil {
		return now, err
	}
	var known bool
	err = t.pool.QueryRow(ctx, t.in(knownSQL), sink).Scan(&known, &now)
	if err == nil && !known {
		err = noSink(sink)
	}
	return now, unavailable("read", "read sinks", err)
}

// collect reads the rows of a statement, which it replans for the parameters.
func collect[T any](ctx context.Context, t *Table, what, sql string, scan pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, _ := t.pool.Query(ctx, t.in(sql), append([]any{pgx.QueryExecModeExec}, args...)...) // CollectRows returns its error
	list, err := pgx.CollectRows(rows, scan)
	return list, unavailable("read", "read "+what, err)
}

// collectPage is collect for a page: the statement's last parameter is the limit. It reports whether there are more rows.
func collectPage[T any](ctx context.Context, t *Table, what, sql string, limit int, scan pgx.RowToFunc[T], args ...any) (
	page []T, more bool, err error) {
	if limit < 0 || limit > 1000 {
		return nil, false, workflow.Errorf(workflow.InvalidRequest, "limit is not 1 to 1000")
	}
	limit = cmp.Or(limit, 100)
	page, err = collect(ctx, t, what, sql, scan, append(args, limit+1)...)
	return page[:min(len(page), limit)], len(page) > limit, err
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
