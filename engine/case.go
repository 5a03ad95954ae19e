package engine

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/transitions"
)

// undoingSQL reads the undos of an instance that are in flight. Parameters: tenant,
// the scope of its undos, how many.
const undoingSQL = `SELECT NULL::text, ` + recordColumns + ` FROM (SELECT * FROM pawl.command u
	WHERE u.tenant = $1 AND u.scope = $2 AND u.phase IS NOT NULL
	ORDER BY u.created_at, u.key LIMIT $3) c` + recordAudit + ` ORDER BY c.created_at, c.key`

// Case reads the whole of one instance: what is shown of it, what is in flight, its
// newest transitions, and whether its audit chain is intact. It reads all of that
// chain. Error: InstanceNotFound.
func (e *Engine) Case(ctx context.Context, tenant string, id uuid.UUID) (c inspect.Case, err error) {
	tenant = tenantOr(tenant)
	if c.View, err = e.View(ctx, tenant, id); err != nil {
		return c, err
	}
	if c.InFlight, err = e.queries.inFlight(ctx, &c.Instance); err != nil {
		return c, err
	}
	c.Earlier = max(0, c.Version-inspect.MaxTimeline)
	if c.Timeline, err = e.History(ctx, tenant, id, c.Earlier, inspect.MaxTimeline); err != nil {
		return c, err
	}
	c.Chain, err = e.Verify(ctx, tenant, id)
	return c, err
}

// inFlight reads the command whose outcome takes the instance on, and its undos.
func (q *queries) inFlight(ctx context.Context, inst *transitions.Instance) (list []transitions.Record, err error) {
	if ref := inst.Links.InFlight; ref != nil {
		if list, err = q.records(ctx, inst.Tenant, []transitions.Ref{{Tenant: inst.Tenant, Scope: ref.Scope, Key: ref.Key}}); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(r transitions.Record) bool { return !r.InFlight() }) // it has ended meanwhile
	}
	found, err := q.pool.Query(ctx, q.in(undoingSQL), plannedNow, inst.Tenant, decide.UndoScope(inst.ID), inspect.MaxWaiting)
	if err != nil {
		return nil, readError("undos", err)
	}
	undos, err := pgx.CollectRows(found, readRecord)
	if err != nil {
		return nil, readError("undos", err)
	}
	return append(list, undos...), nil
}
