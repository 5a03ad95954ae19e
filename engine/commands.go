package engine

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Commands lists the commands in flight, timers among them: what is stuck, what is worked on, what waits for work, for the end of
// a pause and for its time, each in the order of its time, work by activity. What a page costs is bounded; one may have fewer than
// Limit although there are more, and Page.More says it. What moves on meanwhile may be on two pages, or on none.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable.
func (a *Admin) Commands(ctx context.Context, f inspect.CommandFilter) (inspect.CommandPage, error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return inspect.CommandPage{}, err
	}
	if f.Kind != inspect.CommandsAll && !slices.Contains(inspect.CommandKinds, f.Kind) {
		return inspect.CommandPage{}, workflow.Errorf(workflow.InvalidRequest, "there is no such kind of commands in flight")
	}
	if f.Workflow != "" && a.e.registry.Find(f.Workflow, 0) == nil {
		return inspect.CommandPage{}, definitions.NotFound(f.Workflow)
	}
	return a.e.reader.CommandsInFlight(ctx, f)
}
