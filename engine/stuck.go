package engine

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/transitions"
)

// stuckSQL is a page of the commands that wait for a person, without their
// requests, in the order of the index that holds only those.
const stuckSQL = `SELECT NULL::text, ` + recordColumns + ` FROM (SELECT * FROM pawl.command s
	WHERE s.tenant = $1 AND s.stuck IS NOT NULL AND (s.updated_at, s.scope, s.key) > ($2, $3, $4) AND ($5 = '' OR s.workflow = $5)
	ORDER BY s.updated_at, s.scope, s.key LIMIT $6) c` + recordAudit + ` ORDER BY c.updated_at, c.scope, c.key`

// Stuck lists the commands that wait for a person, the longest waiting first,
// and says whether there are more.
//
// Errors: WorkflowNotFound, Unavailable.
func (e *Engine) Stuck(ctx context.Context, f transitions.StuckFilter) (list []transitions.Record, more bool, err error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return nil, false, err
	}
	if f.Workflow != "" && e.registry.find(f.Workflow, 0) == nil {
		return nil, false, errNoWorkflow(f.Workflow)
	}
	found, err := e.config.Pool.Query(ctx, e.queries.in(stuckSQL), f.Tenant, f.After.UpdatedAt, f.After.Scope, f.After.Key, f.Workflow, f.Limit+1)
	if err != nil {
		return nil, false, readError("stuck commands", err)
	}
	if list, err = pgx.CollectRows(found, scanRecord); err != nil {
		return nil, false, readError("stuck commands", err)
	}
	if len(list) > f.Limit {
		return list[:f.Limit], true, nil
	}
	return list, false, nil
}
