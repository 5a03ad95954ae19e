package api

import (
	"slices"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/inspect"
)

// children lists the instances that one has started, those that the caller may read.
func (a *API) children(r *request) (out wire.ChildPage, err error) {
	f := inspect.ChildFilter{Tenant: r.tenant(), States: r.states(), Open: r.choice("open"), Stuck: r.choice("stuck"), Limit: r.limit()}
	if f.Parent, err = a.addressed(r); err != nil {
		return out, err
	}
	if f.After, err = byStart.after(r); err != nil {
		return out, err
	}
	page, err := a.engine.Read().Children(r.Context(), f)
	out = wire.ChildPage{Instance: f.Parent, Children: []wire.Child{}}
	for i := range page.Children {
		if c := &page.Children[i]; mayRead(&r.caller, c.Workflow, c.ID, c.BusinessKey) {
			out.Children = append(out.Children, childOf(c))
		}
	}
	if page.More {
		out.Next = byStart.encode(&page.Next)
	}
	return out, err
}

// hideChildren removes the problems of children for which the caller lacks the grant.
func hideChildren(c *Caller, g Grant, v *inspect.View) {
	v.StuckChildren = slices.DeleteFunc(v.StuckChildren, func(s inspect.StuckChild) bool {
		return !c.May(g, auth.Target{Workflow: s.Workflow, Instance: s.Instance, BusinessKey: s.BusinessKey})
	})
}

// mayRead reports whether a caller may read an instance of which all of this is known.
func mayRead(c *Caller, workflow string, id uuid.UUID, businessKey string) bool {
	return c.May(Read, auth.Target{Workflow: workflow, Instance: id, BusinessKey: businessKey})
}
