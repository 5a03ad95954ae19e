package engine

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// Children lists the instances that another instance started, in that order, in their current state. The cost of a page is bounded, so a
// page may have fewer than Limit children although more exist; Page.More reports that.
//
// Errors: InstanceNotFound, InvalidRequest, Unavailable.
func (r *Reader) Children(ctx context.Context, f inspect.ChildFilter) (inspect.ChildPage, error) {
	f.Tenant, f.Limit = tenantOr(f.Tenant), pageSize(f.Limit)
	if err := f.Check(); err != nil {
		return inspect.ChildPage{}, err
	}
	parent, err := r.e.reader.Instance(ctx, f.Tenant, f.Parent)
	if err != nil {
		return inspect.ChildPage{}, err
	}
	page, err := r.e.reader.Children(ctx, &parent, &f)
	for i := range page.Children {
		c := &page.Children[i]
		c.Deferred = slices.ContainsFunc(parent.Links.Deferred, func(d transitions.Completion) bool { return d.Child == c.ID })
	}
	return page, err
}
