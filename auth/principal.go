package auth

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
)

// Principal is the sender of a request.
type Principal struct {
	Tenant string
	Actor  string
	Roles  []string // required by workflows; independent of grants
	Grants Grants
	Proof  Proof
	Until  time.Time // expiry of the credential; zero: none

	// Credential identifies the credential if it can be revoked.
	Credential transitions.Credential

	// Ended is closed when the credential is revoked. Nil if it cannot be revoked.
	Ended <-chan struct{}
}

// Proof describes how a principal was authenticated. It never contains the credential.
type Proof struct {
	Kind Kind
	By   string // issuer of a token, id of a key, or issuer of a ticket; "" for none
}

// Kind is a kind of credential.
type Kind string

// Kinds of credentials.
const (
	Loopback Kind = "loopback" // none: callers on this machine are trusted
	JWT      Kind = "jwt"      // a token of an identity provider
	APIKey   Kind = "key"      // an API key
	Ticket   Kind = "ticket"   // a short-lived ticket
)

// String returns the kind and the issuer.
func (p Proof) String() string { return strings.TrimSpace(string(p.Kind) + " " + p.By) }

// has reports whether a grant includes a right.
func (g *Grant) has(r Right) bool { return g.Right == r || g.Right == OperateAll && r == Operate }

// Has reports whether the principal has a right to any target.
func (p *Principal) Has(r Right) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.has(r) })
}

// May reports whether the principal has a right to a target of its tenant. An instance named by its
// id is only covered by a grant for its workflow if the target names that too; see AsksForWorkflow.
func (p *Principal) May(r Right, t Target) bool {
	return p.Grants.Cover(p.Tenant, Grant{r, t})
}

// AsksForWorkflow reports whether May depends on the workflow of an instance that the target names
// by its id alone.
func (p *Principal) AsksForWorkflow(r Right, t Target) bool {
	if t.Instance == uuid.Nil || t.Workflow != "" {
		return false
	}
	return slices.ContainsFunc(p.Grants, func(g Grant) bool {
		t.Workflow = g.Workflow
		return g.has(r) && g.Workflow != "" && g.BusinessKey == "" && g.covers(p.Tenant, &t)
	})
}
