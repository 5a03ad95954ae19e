package auth

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
)

// Principal is who sends a request.
type Principal struct {
	Tenant string
	Actor  string
	Roles  []string // what workflows ask for; grants are not among them
	Grants Grants
	Proof  Proof
	Until  time.Time // when the credential ends; zero: it does not

	// Credential identifies the credential if it can be revoked.
	Credential transitions.Credential

	// Ended is closed when the credential is taken back before its end. nil: that cannot be.
	Ended <-chan struct{}
}

// Proof is how it is known who it is. It never has the credential.
type Proof struct {
	Kind Kind
	By   string // the issuer of a token, the id of a key, who vouches for a ticket; "" for none
}

// Kind is a kind of credentials.
type Kind string

// The kinds of credentials.
const (
	Loopback Kind = "loopback" // none: whoever is on this machine is believed
	JWT      Kind = "jwt"      // a token of an identity provider
	APIKey   Kind = "key"      // a key that was made here
	Ticket   Kind = "ticket"   // a short right that somebody has passed on
)

// String is the kind, and who vouches for it.
func (p Proof) String() string { return strings.TrimSpace(string(p.Kind) + " " + p.By) }

// has reports whether a grant gives a right.
func (g *Grant) has(r Right) bool { return g.Right == r || g.Right == OperateAll && r == Operate }

// Has reports whether the principal has a right, to whatever.
func (p *Principal) Has(r Right) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.has(r) })
}

// May reports whether the principal has a right to a target of his tenant. An instance that is
// named by its id is covered by a grant for its workflow only where the target names that too; see
// AsksForWorkflow.
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
