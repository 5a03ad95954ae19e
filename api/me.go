package api

import (
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/workflow"
)

// Me is who a caller is.
type Me struct {
	Tenant string    `json:"tenant"`
	Actor  string    `json:"actor"`
	Roles  []string  `json:"roles"`  // what workflows ask for; "*" is every role
	Grants []string  `json:"grants"` // what the interface asks for
	Proof  MeProof   `json:"proof"`
	Until  time.Time `json:"until,omitzero"` // when the credential ends
	Can    *MeCan    `json:"can,omitempty"`  // what was asked for
}

// MeProof is how it is known who it is.
type MeProof struct {
	Kind auth.Kind `json:"kind"`
	By   string    `json:"by,omitempty"` // the issuer of a token, the id of a key, who vouches for a ticket
}

// MeCan says whether a caller has a grant.
type MeCan struct {
	Grant   string `json:"grant"`
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"` // the grant that allows it, or what is missing
}

// me says who calls, and what he may do. It does not ask whether there is what a grant names.
func (a *API) me(r *request) (Me, error) {
	c := &r.caller
	out := Me{Tenant: c.Tenant, Actor: c.Actor, Roles: c.Roles, Grants: each(c.Grants, func(g *auth.Grant) string { return g.String() }),
		Proof: MeProof{c.Proof.Kind, c.Proof.By}, Until: c.Until.UTC()}
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

func canOf(c *Caller, asked auth.Grant) *MeCan {
	out := &MeCan{Grant: asked.String(), Why: "no grant gives this right"}
	depends := false
	for _, g := range c.Grants {
		one := auth.Principal{Tenant: c.Tenant, Grants: auth.Grants{g}}
		if one.May(asked.Right, asked.Target) {
			return &MeCan{Grant: out.Grant, Allowed: true, Why: g.String()}
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
