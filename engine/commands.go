package engine

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/definitions"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Commands lists the commands in flight, with timers: stuck ones, running ones, and those that wait for a worker, for the end of a pause or
// for their time, each ordered by time, activities by activity. The cost of a page is bounded, so a page may have fewer than Limit commands
// although more exist; Page.More reports that. A command that changes meanwhile may be on two pages, or on none.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable.
func (a *Admin) Commands(ctx context.Context, f inspect.CommandFilter) (inspect.CommandPage, error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return inspect.CommandPage{}, err
	}
	if f.Kind != inspect.CommandsAll && !slices.Contains(inspect.CommandKinds, f.Kind) {
		return inspect.CommandPage{}, workflow.Errorf(workflow.InvalidRequest, "the kind of commands in flight is unknown")
	}
	if f.Workflow != "" && a.e.registry.Find(f.Workflow, 0) == nil {
		return inspect.CommandPage{}, definitions.NotFound(f.Workflow)
	}
	return a.e.reader.CommandsInFlight(ctx, f)
}
