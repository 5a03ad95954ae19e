package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Caller is the sender of a request, with its tenant and rights.
type Caller = auth.Principal

// The roles by which [Loopback] knows an operator.
const (
	// Operator has the grant operate.
	Operator = "operator"
	// OperatorOfAll has the grant operate:all.
	OperatorOfAll = "operator:all"
)

// Identify says who sends a request; a caller without grants may do nothing, and one without a tenant is of
// "default". Its error is what is answered: Unauthorized, Forbidden, InvalidRequest or Unavailable.
type Identify func(*http.Request) (Caller, error)

// The headers by which a caller on the same machine may name itself.
const (
	headerTenant = "Pawl-Tenant"
	headerActor  = "Pawl-Actor"
	headerRoles  = "Pawl-Roles"
)

var ofCallers = []string{headerTenant, headerActor, headerRoles}

// Loopback trusts every caller. It is for servers that listen on a loopback address only. A caller may name itself with the headers
// Pawl-Tenant (defaults to "default"), Pawl-Actor (defaults to "local") and Pawl-Roles (comma-separated, defaults to every role). It may
// read, follow and submit everything of its tenant, and operate with the role [Operator], [OperatorOfAll] or every role.
//
// Requests of web pages through the user's browser are refused: a Host that is not a loopback name, which prevents DNS rebinding, and
// requests that the browser marks as cross-site.
func Loopback(r *http.Request) (Caller, error) {
	if err := fromThisMachine(r); err != nil {
		return Caller{}, err
	}
	c := Caller{Tenant: transitions.DefaultTenant, Actor: transitions.DefaultActor, Roles: []string{transitions.AnyRole}}
	var err error
	if c.Tenant, err = namedBy(r, headerTenant, c.Tenant, transitions.MaxTenant); err != nil {
		return Caller{}, err
	}
	if c.Actor, err = namedBy(r, headerActor, c.Actor, transitions.MaxActor); err != nil {
		return Caller{}, err
	}
	if values := r.Header.Values(headerRoles); len(values) > 0 {
		c.Roles, err = rolesOf(strings.Join(values, ","))
	}
	c.Grants, c.Proof = grantsOf(c.Roles), auth.Proof{Kind: auth.Loopback}
	return c, err
}

// fromThisMachine refuses what a page of elsewhere could have asked for. Error: Forbidden.
func fromThisMachine(r *http.Request) error {
	if !isLoopback(r.Host) {
		return errNotLoopback
	}
	if crossOrigin.Check(r) != nil {
		return workflow.Errorf(workflow.Forbidden, "the request comes from another origin")
	}
	return nil
}

// grantsOf are those of a caller who is believed.
func grantsOf(roles []string) auth.Grants {
	all := auth.Grants{{Right: Read}, {Right: Streaming}, {Right: Submit}, {Right: ActAs}, {Right: Import}}
	if transitions.HasRole(roles, Operator) {
		all = append(all, auth.Grant{Right: Operate})
	}
	if transitions.HasRole(roles, OperatorOfAll) {
		all = append(all, auth.Grant{Right: OperateAll})
	}
	return all
}

var errNotLoopback = workflow.Errorf(workflow.Forbidden,
	"without authentication only loopback hosts are served: ask for localhost, or configure authentication")

var crossOrigin = http.NewCrossOriginProtection()

// isLoopback reports whether a Host header names this machine's loopback.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && addr.Unmap().IsLoopback()
}

func namedBy(r *http.Request, header, otherwise string, limit int) (string, error) {
	value, err := single(r, header)
	if err != nil || value == "" {
		return otherwise, err
	}
	if problem := transitions.TextProblem(value, limit); problem != "" {
		return "", workflow.Errorf(workflow.InvalidRequest, "the header %s %s", header, problem)
	}
	return value, nil
}

// maxRoles bounds how many roles a caller may name.
const maxRoles = 64

func rolesOf(list string) ([]string, error) {
	var roles []string
	for role := range strings.SplitSeq(list, ",") {
		role = strings.TrimSpace(role)
		if role == "" {
			continue
		}
		if problem := transitions.TextProblem(role, transitions.MaxActor); problem != "" {
			return nil, workflow.Errorf(workflow.InvalidRequest, "a role in the header %s %s", headerRoles, problem)
		}
		roles = append(roles, role)
	}
	if len(roles) > maxRoles {
		return nil, workflow.Errorf(workflow.InvalidRequest, "the header %s names more than %d roles", headerRoles, maxRoles)
	}
	return roles, nil
}

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
