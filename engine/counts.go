package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

// Counts tells how many instances there are of each workflow, version and state. It
// is cheap on large tables: up to 10,000 of a kind are counted, fewer where there are
// more than five kinds (50,000 together), and what is more is estimated by the
// planner. It says of each which it is. Of all tenants ("") everything is an estimate
// where a filter selects more than 1,000 kinds of theirs, or they have more than 10,000
// that it would have to look at: of the workflows that this engine has, and of what
// the first of the tenants have. The kinds of others are left out then.
//
// With attributes, instances are counted if the index of attributes has at most 10,000 of them, and estimated otherwise.
//
// Errors: InvalidRequest, WorkflowNotFound, Unavailable, TimedOut.
func (r *Reader) Counts(ctx context.Context, f inspect.CountFilter) (inspect.Counts, error) {
	c := inspect.Counts{At: r.e.clock.Now().UTC(), Tenant: f.Tenant, Exact: true, Counts: []inspect.InstanceCount{}}
	if f.Workflow != "" {
		if _, err := r.Workflow(f.Workflow, 0); err != nil {
			return c, err
		}
	}
	if err := f.Check(r.Versions(f.Workflow)); err != nil {
		return c, err
	}
	list, exact, err := r.e.reader.Counts(ctx, &f, r.e.registry.kinds(&f))
	if err != nil {
		return c, err
	}
	c.Exact = exact
	for _, k := range list {
		c.Add(k)
	}
	slices.SortFunc(c.Counts, func(a, b inspect.InstanceCount) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), a.Definition-b.Definition, cmp.Compare(a.State, b.State))
	})
	return c, nil
}

// kinds are those that a filter selects of the definitions that this node knows, of
// no tenant.
func (r *registry) kinds(f *inspect.CountFilter) (list []store.Kind) {
	for _, w := range r.All() {
		for _, state := range w.States {
			k := store.Kind{Workflow: w.Name, Definition: w.Version, State: state, Open: !w.IsFinal(state)}
			if k.Selected(f) {
				list = append(list, k)
			}
		}
	}
	return list
}
