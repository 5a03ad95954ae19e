package engine

import (
	"context"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
)

// View reads an instance with its timers, with what is scheduled on it, with what
// of it is stuck, and with its parent. Error: InstanceNotFound.
func (r *Reader) View(ctx context.Context, tenant string, id uuid.UUID) (inspect.View, error) {
	v, err := r.e.reader.View(ctx, tenantOr(tenant), id)
	if p := v.Links.Parent; p != nil && err == nil {
		v.Parent = &inspect.Parent{Workflow: p.Workflow, Instance: p.Instance, End: p.End}
		v.Parent.BusinessKey, err = r.e.reader.BusinessKeyOf(ctx, tenantOr(tenant), p.Instance)
	}
	return v, err
}

// ViewByKey is View of the instance that a business key names. Errors:
// WorkflowNotFound, InstanceNotFound.
func (r *Reader) ViewByKey(ctx context.Context, tenant, workflowName, businessKey string) (inspect.View, error) {
	id, err := r.e.named(tenant, workflowName, businessKey)
	if err != nil {
		return inspect.View{}, err
	}
	v, err := r.View(ctx, tenant, id)
	return v, ofKey(&v.Instance, workflowName, businessKey, err)
}
