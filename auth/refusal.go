package auth

import "github.com/pawlhq/pawl/workflow"

// Reason is why a credential is not taken, in a word that counts and logs have.
type Reason string

// The reasons. None of them helps to make a credential that is taken.
const (
	Missing       Reason = "missing"        // there is none
	Malformed     Reason = "malformed"      // it is nothing that could be one
	BadAlgorithm  Reason = "algorithm"      // it is signed in a way that is not taken, or not at all
	UnknownKey    Reason = "unknown_key"    // it names no key that is known
	BadSignature  Reason = "signature"      // its signature is not right
	WrongIssuer   Reason = "wrong_issuer"   // somebody else made it
	WrongAudience Reason = "wrong_audience" // it was made for somebody else
	Expired       Reason = "expired"        // its time is over
	NotYetValid   Reason = "not_yet_valid"  // its time has not come
	BadClaims     Reason = "claims"         // it does not say who it is, or for which tenant
	Revoked       Reason = "revoked"        // it was taken back
	NoGrant       Reason = "grant"          // it is good, and gives no right to this
)

// Refusal is the cause of the Unauthorized and Forbidden of this package and those below it.
type Refusal struct {
	Reason        Reason
	Tenant, Actor string // who it is, where that is known
	Proof         Proof
}

// Error is the reason.
func (r *Refusal) Error() string { return string(r.Reason) }

// Refuse makes an Unauthorized with a reason and a message that is safe to tell.
func Refuse(reason Reason, message string) error {
	return &workflow.Error{Code: workflow.Unauthorized, Message: message, Cause: &Refusal{Reason: reason}}
}

// Lacks is the Forbidden for want of a right to a target. It names the grant.
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

// Denied is the Forbidden for want of something else, with a message that is safe to tell.
func (p *Principal) Denied(message string) error {
	return &workflow.Error{Code: workflow.Forbidden, Message: message, Cause: &Refusal{NoGrant, p.Tenant, p.Actor, p.Proof}}
}
