package api

import (
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

// me answers with the caller and its rights. It does not check that the targets of its grants exist.
func (a *API) me(r *request) (wire.Me, error) {
	c := &r.caller
	out := wire.Me{Tenant: c.Tenant, Actor: c.Actor, Roles: c.Roles, Grants: each(c.Grants, func(g *auth.Grant) string { return g.String() }),
		Proof: wire.MeProof{Kind: c.Proof.Kind, By: c.Proof.By}, Until: c.Until.UTC()}
	if !r.given("can") {
		return out, nil
	}
	asked, err := auth.ParseGrant(r.text("can"))
	if err != nil {
		return out, workflow.Errorf(workflow.InvalidRequest, "%s", err)
	}
	out.Can = canOf(c, asked)
	return out, nil
}

func canOf(c *Caller, asked auth.Grant) *wire.MeCan {
	out := &wire.MeCan{Grant: asked.String(), Why: "no grant gives this right"}
	depends := false
	for _, g := range c.Grants {
		one := auth.Principal{Tenant: c.Tenant, Grants: auth.Grants{g}}
		if one.May(asked.Right, asked.Target) {
			return &wire.MeCan{Grant: out.Grant, Allowed: true, Why: g.String()}
		}
		depends = depends || one.AsksForWorkflow(asked.Right, asked.Target)
		if one.Has(asked.Right) {
			out.Why = "the grants with this right are narrower, or for something else"
		}
	}
	if depends {
		out.Why = "it depends on the workflow of the instance: ask for that"
	}
	return out
}
