package relay

import (
	"context"
	"fmt"
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
	return collect(ctx, t, "sinks", t.sql.infos, func(row pgx.CollectableRow) (i inspect.SinkInfo, err error) {
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
	return collect(ctx, t, "sinks", t.sql.nodes, pgx.RowToStructByPos[Deliverer], tenant)
}

// Cursors lists the cursors of a sink by tenant and reports whether there are more.
func (t *Table) Cursors(ctx context.Context, f inspect.CursorFilter) (list []inspect.SinkCursor, more bool, err error) {
	limit, err := limitOf(f.Limit)
	if err != nil {
		return nil, false, err
	}
	for _, tenant := range []string{f.Tenant, f.After} {
		if err := transitions.CheckTenant(tenant); err != nil {
			return nil, false, err
		}
	}
	if err := t.mustKnow(ctx, f.Sink); err != nil {
		return nil, false, err
	}
	list, err = collect(ctx, t, "cursors", t.sql.cursors, func(row pgx.CollectableRow) (c inspect.SinkCursor, err error) {
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
	}, f.Sink, f.Tenant, f.After, limit+1)
	list, more = trimPage(list, limit)
	return list, more, err
}

// DeadLetters lists dead letters by tenant, instance and position and reports whether there are
// more.
func (t *Table) DeadLetters(ctx context.Context, f inspect.DeadFilter, p inspect.DeadPage) (
	list []inspect.DeadLetter, more bool, err error) {
	limit, err := limitOf(p.Limit)
	if err != nil {
		return nil, false, err
	}
	if err := checkFilter(&f); err != nil {
		return nil, false, err
	}
	if err := transitions.CheckTenant(p.After.Tenant); err != nil {
		return nil, false, err
	}
	if err := t.mustKnow(ctx, f.Sink); err != nil {
		return nil, false, err
	}
	a := p.After
	list, err = collect(ctx, t, "dead letters", t.sql.dead, func(row pgx.CollectableRow) (d inspect.DeadLetter, err error) {
		err = row.Scan(&d.Sink, &d.Tenant, &d.Position, &d.Type, &d.Ordinal, &d.Workflow, &d.Instance, &d.BusinessKey, &d.Status, &d.Kind,
			&d.Failure, &d.Attempts, &d.Created, &d.Updated, &d.By, &d.Reason)
		d.Created, d.Updated = d.Created.UTC(), d.Updated.UTC()
		return d, err
	}, append(argsOf(&f), a.Tenant, a.Instance, a.Position, a.Ordinal, limit+1)...)
	list, more = trimPage(list, limit)
	return list, more, err
}

func trimPage[T any](list []T, limit int) (page []T, more bool) {
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}

func (t *Table) mustKnow(ctx context.Context, sink string) error {
	if err := checkSink(sink); err != nil {
		return err
	}
	var known bool
	var now time.Time
	if err := t.q.QueryRow(ctx, t.sql.known, sink).Scan(&known, &now); err != nil {
		return readError("sinks", err)
	}
	if !known {
		return noSink(sink)
	}
	return nil
}

func collect[T any](ctx context.Context, t *Table, what, sql string, scan pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := t.q.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...) // replan for the parameters
	if err != nil {
		return nil, readError(what, err)
	}
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, readError(what, err)
	}
	return list, nil
}

func limitOf(limit int) (int, error) {
	if limit < 0 || limit > 1000 {
		return 0, workflow.Errorf(workflow.InvalidRequest, "limit is not 1 to 1000")
	}
	if limit == 0 {
		limit = 100
	}
	return limit, nil
}

func readError(what string, err error) error {
	cause := fmt.Errorf("read %s: %w", what, err)
	return &workflow.Error{Code: workflow.Unavailable, Message: "the database could not be read; try again", Cause: cause}
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
