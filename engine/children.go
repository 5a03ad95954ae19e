package engine

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// Children lists the instances that another one has started, in the order of that, as they are now. What a page costs is bounded, so that
// one may have fewer than Limit although there are more; Page.More says it.
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
