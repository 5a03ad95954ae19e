package auth

import "github.com/pawlhq/pawl/workflow"

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
