package engine

import (
	"context"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// KeptMessages lists messages that were stored as received, without headers and bodies, ordered by consumer and time of receipt. It
// reports whether there are more.
//
// Errors: InvalidRequest, Unavailable.
func (a *Admin) KeptMessages(ctx context.Context, f inspect.KeptMessageFilter) (list []inspect.KeptMessage, more bool, err error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := transitions.CheckTenant(f.Tenant); err != nil {
		return nil, false, err
	}
	if f.ID != "" && f.Consumer == "" {
		return nil, false, workflow.Errorf(workflow.InvalidRequest, "the id of a message needs its consumer")
	}
	if problem := transitions.TextProblem(f.Consumer, transitions.MaxConsumer); problem != "" {
		return nil, false, workflow.Errorf(workflow.InvalidRequest, "the consumer %s", problem)
	}
	if problem := transitions.TextProblem(f.ID, transitions.MaxKey); problem != "" {
		return nil, false, workflow.Errorf(workflow.InvalidRequest, "the id of the message %s", problem)
	}
	return a.e.inbox.ListKept(ctx, f, a.e.clock.Now())
}

// KeptMessage reads a message with its headers and its body. Errors: NotFound, Unavailable.
func (a *Admin) KeptMessage(ctx context.Context, r transitions.MessageRef) (inspect.KeptMessage, error) {
	r.Tenant = tenantOr(r.Tenant)
	if (transitions.Message{Tenant: r.Tenant, Consumer: r.Consumer, ID: r.ID}).Check() != nil { // PostgreSQL cannot read such text
		return inspect.KeptMessage{}, workflow.Errorf(workflow.NotFound, "no such message is kept")
	}
	return a.e.inbox.Kept(ctx, r, a.e.clock.Now())
}
