package engine

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/definitions"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// errKeyAlone refuses a business key that may be that of several workflows.
var errKeyAlone = workflow.Errorf(workflow.InvalidRequest, "a filter by business key needs the workflow")

// stuckSQL is a page of the commands that wait for an operator, without their
// requests, in the order of the index that holds only those, or those of an instance
// by the index for that. The instance of a creation is not there yet.
const stuckSQL = `SELECT NULL::text, ` + recordColumns + `, coalesce(i.business_key, c.request->>'business_key', '')
FROM (SELECT * FROM pawl.command s
	WHERE s.tenant = $1 AND s.stuck IS NOT NULL AND (s.updated_at, s.scope, s.key) > ($2, $3, $4) AND ($5 = '' OR s.workflow = $5)
		AND ($6::uuid IS NULL OR s.instance = $6)
	ORDER BY s.updated_at, s.scope, s.key LIMIT $7) c` + recordAudit + `
	LEFT JOIN LATERAL (SELECT i.business_key FROM pawl.instance i WHERE i.tenant = $1 AND i.id = c.instance LIMIT 1) i ON true
ORDER BY c.updated_at, c.scope, c.key`

// Stuck lists the commands that wait for an operator, the longest waiting first,
// with the business keys of their instances, and says whether there are more.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable.
func (e *Engine) Stuck(ctx context.Context, f inspect.StuckFilter) (list []transitions.Record, more bool, err error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return nil, false, err
	}
	if f.Workflow != "" && e.registry.Find(f.Workflow, 0) == nil {
		return nil, false, definitions.NotFound(f.Workflow)
	}
	if f.BusinessKey != "" {
		if f.Workflow == "" {
			return nil, false, errKeyAlone
		}
		if problem := transitions.TextProblem(f.BusinessKey, workflow.MaxBusinessKey); problem != "" {
			return nil, false, workflow.Errorf(workflow.InvalidRequest, "the business key %s", problem)
		}
		f.Instance = transitions.InstanceID(f.Tenant, f.Workflow, f.BusinessKey)
	}
	var instance *uuid.UUID
	if f.Instance != uuid.Nil {
		instance = &f.Instance
	}
	found, err := e.config.Pool.Query(ctx, e.queries.in(stuckSQL), plannedNow, f.Tenant, f.After.UpdatedAt, f.After.Scope, f.After.Key,
		f.Workflow, instance, f.Limit+1)
	if err != nil {
		return nil, false, readError("stuck commands", err)
	}
	if list, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (transitions.Record, error) {
		var key string
		r, err := scanRecord(row, &key)
		r.BusinessKey = key
		return r, err
	}); err != nil {
		return nil, false, readError("stuck commands", err)
	}
	if len(list) > f.Limit {
		return list[:f.Limit], true, nil
	}
	return list, false, nil
}
