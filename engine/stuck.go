package engine

import (
	"context"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// errKeyAlone refuses a business key that may be that of several workflows.
var errKeyAlone = workflow.Errorf(workflow.InvalidRequest, "a filter by business key needs the workflow")

// Stuck lists the commands that wait for an operator, the longest waiting first,
// with the business keys of their instances, and says whether there are more.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable.
func (a *Admin) Stuck(ctx context.Context, f inspect.StuckFilter) (list []transitions.Record, more bool, err error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return nil, false, err
	}
	if f.Workflow != "" && a.e.registry.Find(f.Workflow, 0) == nil {
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
	return a.e.reader.Stuck(ctx, f)
}
