package service

import (
	"context"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/internal/usage"
	"github.com/pawlhq/pawl/metrics"
)

// Auth says whose credentials a Service takes.
type Auth struct {
	// JWT takes the tokens of an identity provider. nil takes none.
	JWT *jwt.Config
}

// Configured reports whether callers need a credential.
func (a *Auth) Configured() bool { return a.JWT != nil }

// check refuses what would take too much. Nothing is fetched.
func (a *Auth) check() error {
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

// authenticate makes an interface ask for credentials, and returns what is measured of that.
func (s *Service) authenticate(ctx context.Context, c *api.Config) (*metrics.Refusals, error) {
	refusals := metrics.NewRefusals()
	c.Refused = refusals.Count
	s.takeTickets(c)
	if !s.config.Auth.Configured() {
		return refusals, nil
	}
	tokens := *s.config.Auth.JWT
	tokens.Log = s.config.Log
	v, err := jwt.New(tokens)
	if err != nil {
		return nil, err
	}
	v.Start(ctx)
	s.tokens = v
	refusals.Keys = func() metrics.TokenKeys {
		stats := v.Stats()
		return metrics.TokenKeys{Keys: stats.Keys, Reads: stats.Reads, Failures: stats.Failures, Read: stats.Read}
	}
	c.Identify, c.Health = api.Bearer(v.Verify), v.Health
	return refusals, nil
}
