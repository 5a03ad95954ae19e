package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Caller is who sends a request, and for which tenant.
type Caller struct {
	Tenant string
	Actor  string
	Roles  []string
}

// The roles of those who may use /v1/ops.
const (
	// Operator sees and does what concerns the caller's own tenant.
	Operator = "operator"
	// OperatorOfAll also sees and does what concerns every tenant.
	OperatorOfAll = "operator:all"
)

// Identify says who sends a request. Its error is what the caller is answered
// with: Unauthorized, Forbidden or InvalidRequest.
type Identify func(*http.Request) (Caller, error)

// The headers by which a caller on the same machine may name itself.
const (
	headerTenant = "Pawl-Tenant"
	headerActor  = "Pawl-Actor"
	headerRoles  = "Pawl-Roles"
)

var ofCallers = []string{headerTenant, headerActor, headerRoles}

// Loopback trusts every caller, and is for a server that listens on a loopback
// address only. A caller may name itself with the headers Pawl-Tenant (default
// "default"), Pawl-Actor (default "local") and Pawl-Roles (comma-separated,
// default every role).
//
// Two ways in which a web page could reach such a server through the user's
// browser are closed: a request whose Host is not a loopback name is refused,
// which stops DNS rebinding, and so is a request that the browser says comes
// from another site.
func Loopback(r *http.Request) (Caller, error) {
	if !isLoopback(r.Host) {
		return Caller{}, errNotLoopback
	}
	if err := crossOrigin.Check(r); err != nil {
		return Caller{}, workflow.Errorf(workflow.Forbidden, "the request comes from another origin")
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
	return c, err
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
