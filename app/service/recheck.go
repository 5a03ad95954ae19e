package service

import (
	"context"
	"strings"
	"time"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/auth/ticket/keyset"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// recheckTime bounds how long the tables of credentials may take.
const recheckTime = 5 * time.Second

// rechecker refuses scheduled commands whose credential is no longer valid. It reads the tables and not what the node remembers, so a
// revocation counts from its commit on, on every node, also on one that takes no API keys.
type rechecker struct {
	keys    *apikey.Table
	tickets *keyset.Set
}

// check implements [engine.Config].Recheck.
func (r *rechecker) check(ctx context.Context, c *transitions.Command) error {
	ctx, cancel := context.WithTimeout(ctx, recheckTime)
	defer cancel()
	used := c.Credential
	if used == (transitions.Credential{}) {
		used.Key = keyOfProof(c.Proof)
	}
	if !used.Until.IsZero() && !time.Now().Before(used.Until) {
		return credentialEnded("the credential that scheduled the command ended at " + used.Until.UTC().Format(time.RFC3339))
	}
	if used.Ticket != "" {
		there, err := r.tickets.Holds(ctx, used.Ticket)
		if err != nil {
			return err
		}
		if !there {
			return credentialEnded("the ticket that scheduled the command was revoked")
		}
	}
	if used.Key == "" {
		return nil
	}
	k, err := r.keys.Get(ctx, "", used.Key)
	if err != nil && workflow.CodeOf(err) != workflow.NotFound {
		return err
	}
	return ofKey(&k, c)
}

// ofKey refuses a command that a key, the zero value for one that is not there, may not send any more.
func ofKey(k *apikey.Key, c *transitions.Command) error {
	target := auth.Target{Workflow: c.Workflow, Transition: c.Transition, Instance: c.Instance}
	lacks := func(right auth.Right) bool {
		return !k.Grants.Cover(c.Tenant, auth.Grant{Right: right, Target: target})
	}
	switch {
	case k.ID == "" || !k.RevokedAt.IsZero():
		return credentialEnded("the API key that scheduled the command was revoked")
	case !k.ExpiresAt.IsZero() && !time.Now().Before(k.ExpiresAt):
		return credentialEnded("the API key that scheduled the command ended at " + k.ExpiresAt.UTC().Format(time.RFC3339))
	case lacks(auth.Submit):
		return credentialEnded("the API key that scheduled the command no longer has a grant for it")
	case c.Actor != k.Actor && lacks(auth.ActAs):
		return credentialEnded("the API key that scheduled the command no longer has a grant to act as another actor")
	}
	return nil
}

func credentialEnded(message string) error {
	return workflow.Errorf(workflow.CredentialEnded, "%s", message)
}

// keyOfProof is the id of the API key in the proof of a command that an earlier release has scheduled; "" for none.
func keyOfProof(proof string) string {
	words := strings.Fields(proof)
	if len(words) > 0 && words[0] == string(auth.Ticket) {
		words = words[1:]
	}
	if len(words) > 1 && words[0] == string(auth.APIKey) && apikey.IsID(words[1]) {
		return words[1]
	}
	return ""
}
