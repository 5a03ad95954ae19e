package service

import (
	"context"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/auth/ticket/keyset"
	"github.com/pawlhq/pawl/schema"
)

// takeTickets enables tickets. They need no configuration: a ticket never grants more than its requester has. keys are the API keys that
// may request tickets; nil for none.
func (s *Service) takeTickets(c *api.Config, keys *apikey.Verifier) {
	var vouched ticket.Vouched
	if keys != nil {
		vouched = keys.Good
	}
	s.tickets = ticket.New(s.ring, vouched)
	c.Tickets = s.tickets
}

func (c Config) ring(d *database) *keyset.Set {
	return keyset.New(keyset.Config{Pool: d.pool, In: schema.For(c.Schema), Log: c.Log})
}

// RotateTicketKeys makes a key that signs tickets from now on. With drop, all others are removed: every ticket that there is
// ends within seconds. It needs only the database and the schema of c.
//
// Errors: a *usage.Error for a schema name that cannot be; those of package schema and of the database.
func RotateTicketKeys(ctx context.Context, c Config, drop bool) error {
	if err := schema.CheckName(c.Schema); err != nil {
		return &usage.Error{Err: err}
	}
	return withDatabase(ctx, c, func(d *database) error {
		keys := c.ring(d)
		defer keys.Stop()
		return keys.Rotate(ctx, drop)
	})
}
