package auth

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
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

// May reports whether the principal has a right to a target of its tenant. An instance named by its id is only covered by a grant for its
// workflow if the target names that too; see AsksForWorkflow.
func (p *Principal) May(r Right, t Target) bool {
	return p.Grants.Cover(p.Tenant, Grant{r, t})
}

// AsksForWorkflow reports whether May depends on the workflow of an instance that the target names by its id alone.
func (p *Principal) AsksForWorkflow(r Right, t Target) bool {
	if t.Instance == uuid.Nil || t.Workflow != "" {
		return false
	}
	return slices.ContainsFunc(p.Grants, func(g Grant) bool {
		t.Workflow = g.Workflow
		return g.has(r) && g.Workflow != "" && g.BusinessKey == "" && g.covers(p.Tenant, &t)
	})
}

// Reason is the reason for rejecting a credential, as counted and logged.
type Reason string

// Reasons. They do not help to forge a credential.
const (
	Missing       Reason = "missing"        // no credential
	Malformed     Reason = "malformed"      // not a credential
	BadAlgorithm  Reason = "algorithm"      // unsigned, or signed with an algorithm that is not accepted
	UnknownKey    Reason = "unknown_key"    // unknown key
	BadSignature  Reason = "signature"      // wrong signature
	WrongIssuer   Reason = "wrong_issuer"   // wrong issuer
	WrongAudience Reason = "wrong_audience" // wrong audience
	Expired       Reason = "expired"        // expired
	NotYetValid   Reason = "not_yet_valid"  // not valid yet
	BadClaims     Reason = "claims"         // missing or invalid identity or tenant
	Revoked       Reason = "revoked"        // revoked
	NoGrant       Reason = "grant"          // valid, but without a grant for the request
)

// Refusal is the cause of Unauthorized and Forbidden errors of this package and those below it.
type Refusal struct {
	Reason        Reason
	Tenant, Actor string // of the caller, if known
	Proof         Proof
}

// Error returns the reason.
func (r *Refusal) Error() string { return string(r.Reason) }

// Refuse returns an Unauthorized error with a reason and a message that is safe to show.
func Refuse(reason Reason, message string) error {
	return &workflow.Error{Code: workflow.Unauthorized, Message: message, Cause: &Refusal{Reason: reason}}
}

// Lacks returns the Forbidden error for a missing right to a target. It names the grant.
func (p *Principal) Lacks(r Right, t Target) error {
	g := Grant{Right: r, Target: t}
	if !r.ofTransition() {
		g.Transition = ""
	}
	if r == OperateAll {
		g.Target = Target{}
	}
	return p.Denied(`this takes the grant "` + g.String() + `"`)
}

// Denied returns a Forbidden error with a message that is safe to show.
func (p *Principal) Denied(message string) error {
	return &workflow.Error{Code: workflow.Forbidden, Message: message, Cause: &Refusal{NoGrant, p.Tenant, p.Actor, p.Proof}}
}
