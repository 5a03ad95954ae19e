// Package ticket issues short-lived credentials that a caller passes on, for example to a browser. They allow reading, following or
// commanding one instance, business key or workflow, within the caller's own permissions. A ticket is a signed text; nothing is stored for
// it.
//
// The text is [Prefix] and a compact JSON Web Signature (RFC 7515) with HS256. [Keys] provides the keys; package keyset stores them in the
// database for all nodes.
package ticket

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/transitions"
)

// Prefix is the prefix of each ticket's text.
const Prefix = "pawlt_"

// Is reports whether a credential has the prefix of a ticket.
func Is(credential string) bool { return strings.HasPrefix(credential, Prefix) }

// Bounds of a ticket.
const (
	Longest   = time.Hour // maximum lifetime
	MaxText   = 3800      // bytes; browsers limit a cookie with name and attributes to 4,096
	MaxRoles  = 64
	MaxGrants = 32
)

// Rights are the rights that a ticket can have.
var Rights = []auth.Right{auth.Read, auth.Stream, auth.Submit}

// Ticket is the content of a ticket.
type Ticket struct {
	Tenant string
	Actor  string
	Roles  []string
	Grants auth.Grants
	By     string // proof of the caller that requested it, with the caller's name if the actor is another one
	Key    string // id of the API key that requested it and on which it depends; "" for none
	Until  time.Time
}

// Check validates a ticket. Its error is for the caller that requests one.
func (t *Ticket) Check() error {
	for _, text := range []struct {
		name, value string
		limit       int
	}{{"tenant", t.Tenant, transitions.MaxTenant}, {"actor", t.Actor, transitions.MaxActor}} {
		switch problem := transitions.TextProblem(text.value, text.limit); {
		case text.value == "":
			return fmt.Errorf("the %s is empty", text.name)
		case problem != "":
			return fmt.Errorf("the %s %s", text.name, problem)
		}
	}
	if prefix := transitions.ReservedPrefix(t.Actor); prefix != "" {
		return fmt.Errorf("the actor begins with %q, which is reserved", prefix)
	}
	roles := t.Roles
	if len(roles) > MaxRoles {
		return fmt.Errorf("there are more than %d roles", MaxRoles)
	}
	for i, role := range roles {
		switch problem := transitions.TextProblem(role, transitions.MaxActor); {
		case role == "":
			return errors.New("a role is empty")
		case problem != "":
			return fmt.Errorf("a role %s", problem)
		case slices.Contains(roles[:i], role):
			return errors.New("duplicate role")
		}
	}
	if err := checkGrants(t.Grants); err != nil {
		return err
	}
	if proof := t.proof().String(); transitions.TextProblem(proof, transitions.MaxProof) != "" {
		return fmt.Errorf("the name of its issuer exceeds the limit of the audit log (%d bytes)", transitions.MaxProof)
	}
	return nil
}

func (t *Ticket) proof() auth.Proof { return auth.Proof{Kind: auth.Ticket, By: t.By} }

func checkGrants(grants auth.Grants) error {
	switch {
	case len(grants) == 0:
		return errors.New("there is no grant")
	case len(grants) > MaxGrants:
		return fmt.Errorf("there are more than %d grants", MaxGrants)
	}
	for i, g := range grants {
		switch {
		case !slices.Contains(Rights, g.Right):
			return fmt.Errorf("the grant %q is not for tickets: they can read, stream and submit", g)
		case g.Workflow == "" && g.Instance == uuid.Nil:
			return fmt.Errorf("the grant %q is for everything: a ticket names an instance, a business key or a workflow, such as %s:order#A-17",
				g, g.Right)
		case slices.Contains(grants[:i], g):
			return fmt.Errorf("duplicate grant %q", g)
		}
	}
	return nil
}
