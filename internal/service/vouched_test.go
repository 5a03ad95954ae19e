package service

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/internal/await"
)

// A ticket that was asked for with an API key ends with that.
func TestATicketEndsWithTheKeyThatVouchesForIt(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys = true })
	key, text := makeKey(t, s, "shop", "read:order stream:order")
	given := ticketOf(t, s, text)
	const log = "/v1/events?workflow=order&business_key=A-17"
	if status, body := asks(t, s, log, given); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if err := WithKeys(t.Context(), s.config, func(ctx context.Context, table *apikey.Table) error {
		_, err := table.Revoke(ctx, "", key.ID, "test")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the ticket has ended", func() bool {
		status, _ := asks(t, s, log, given)
		return status == 401
	})
}
