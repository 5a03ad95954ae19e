package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/auth/ticket/keyset"
	"github.com/pawlhq/pawl/metrics"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Auth configures the credentials that a Service accepts.
type Auth struct {
	// JWT accepts the tokens of an identity provider. Nil accepts none.
	JWT *jwt.Config

	// Login adds sign-in to the console at the identity provider of JWT. Nil disables it: users enter a credential.
	Login *login.Config

	// Keys accepts API keys, which are created with "pawl keys" and over REST.
	Keys bool

	// KeepScheduled decides scheduled commands although the API key or the ticket that they were sent with was revoked, or has ended.
	// By default they are refused with CredentialEnded.
	KeepScheduled bool
}

// Configured reports whether callers need a credential.
func (a *Auth) Configured() bool { return a.JWT != nil || a.Keys }

// check validates the configuration. It fetches nothing.
func (a *Auth) check() error {
	if a.Login != nil {
		if _, err := login.New(*a.Login); err != nil {
			return &usage.Error{Err: err}
		}
	}
	if a.JWT == nil {
		return nil
	}
	v, err := jwt.New(*a.JWT)
	if err != nil {
		return &usage.Error{Err: err}
	}
	v.Stop()
	return nil
}

// kind is a kind of credential.
type kind struct {
	prefix string // "" matches any other
	verify func(ctx context.Context, credential string) (auth.Principal, error)
	health func() (warning string, err error)
	stop   func()
}

// kinds are the accepted kinds, those with a prefix first.
type kinds []kind

// verify returns the principal of a credential.
func (all kinds) verify(ctx context.Context, credential string) (auth.Principal, error) {
	for _, one := range all {
		if strings.HasPrefix(credential, one.prefix) {
			return one.verify(ctx, credential)
		}
	}
	return auth.Principal{}, auth.Refuse(auth.Malformed, "this kind of credential is not accepted here")
}

// health returns an error if no kind can be verified, and a warning if another kind can.
func (all kinds) health() (warning string, err error) {
	var warnings []string
	failed := 0
	for _, one := range all {
		text, wrong := one.health()
		if wrong != nil {
			text, err = wrong.Error(), wrong
			failed++
		}
		if known, is := errors.AsType[*workflow.Error](wrong); is {
			text = known.Message
		}
		if text != "" {
			warnings = append(warnings, text)
		}
	}
	if failed < len(all) {
		err = nil
	}
	return strings.Join(warnings, "; "), err
}

// stop stops the verifiers and waits for them.
func (all kinds) stop() {
	for _, one := range all {
		one.stop()
	}
}

// authenticate configures authentication of the API, and returns its metrics.
func (s *Service) authenticate(ctx context.Context, c *api.Config) (*metrics.Refusals, error) {
	refusals := metrics.NewRefusals()
	c.Refused = refusals.Count
	var keys *apikey.Verifier
	if s.config.Auth.Keys {
		v := apikey.NewVerifier(keysOf(s.database, s.config.Schema), apikey.Config{Log: s.config.Log})
		v.Start()
		refusals.APIKeys = func() metrics.APIKeys {
			stats := v.Stats()
			return metrics.APIKeys{Known: stats.Known, Lookups: stats.Lookups, Looks: stats.Looks, Failures: stats.Failures}
		}
		c.Keys = v
		s.kinds = append(s.kinds, kind{apikey.Prefix, v.Verify, v.Health, v.Stop})
		keys = v
	}
	// Enable tickets. They need no configuration: a ticket never grants more than its requester has. keys are the
	// API keys that may request tickets; nil for none.
	var vouched ticket.Vouched
	if keys != nil {
		vouched = keys.Good
	}
	s.tickets = ticket.New(s.ring, vouched)
	c.Tickets = s.tickets
	if !s.config.Auth.Configured() {
		return refusals, nil
	}
	if s.config.Auth.JWT != nil {
		tokens := *s.config.Auth.JWT
		tokens.Log = s.config.Log
		v, err := jwt.New(tokens)
		if err != nil {
			return nil, err
		}
		v.Start(ctx)
		refusals.Keys = func() metrics.TokenKeys {
			stats := v.Stats()
			return metrics.TokenKeys{Keys: stats.Keys, Reads: stats.Reads, Failures: stats.Failures, Read: stats.Read}
		}
		s.kinds = append(s.kinds, kind{"", v.Verify, v.Health, v.Stop})
	}
	c.Identify, c.Health = api.Bearer(s.kinds.verify), s.kinds.health
	return refusals, nil
}

func keysOf(d *database, name string) *apikey.Table {
	return apikey.NewTable(d.pool, schema.For(name))
}

func (c Config) ring(d *database) *keyset.Set {
	return keyset.New(keyset.Config{Pool: d.pool, In: schema.For(c.Schema), Log: c.Log})
}

// RotateTicketKeys creates a key that signs tickets from now on. With drop, all others are removed: every existing ticket ends within
// seconds.
func RotateTicketKeys(ctx context.Context, c Config, drop bool) error {
	return withDatabase(ctx, c, tables, func(d *database) error {
		keys := c.ring(d)
		defer keys.Stop()
		return keys.Rotate(ctx, drop)
	})
}

// recheckTime bounds how long the tables of credentials may take.
const recheckTime = 5 * time.Second

// rechecker refuses scheduled commands whose credential is no longer valid. It reads the tables instead of a cache, so a revocation takes
// effect with its commit on all nodes, even on those that do not accept API keys.
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

// ofKey refuses a command of a revoked or expired key. The zero value is an unknown key.
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

// keyOfProof returns the id of the API key in the proof of a command that an earlier release scheduled, or "".
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
