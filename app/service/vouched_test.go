package service

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// A ticket issued for an API key is valid as long as the key is, on every node, and invalid if API keys are disabled.
func TestATicketOfARevokedKeyIsRefused(t *testing.T) {
	url := pgtest.URL(t)
	keyed := func(c *Config) { c.Database, c.Auth.Keys = url, true }
	ann, bob := service(t, keyed), service(t, keyed)
	open := service(t, func(c *Config) { c.Database = url }) // it believes who is on this machine, but no ticket
	key, text := makeKey(t, ann, "gateway", "read:order stream:order")
	it := ticketOf(t, ann, text)
	status, body := asks(t, bob, "/v1/me", it)
	assert.Truef(t, status == 200 && strings.Contains(body, `"kind":"ticket","by":"key `+key.ID+`"`), "%d %s", status, body)
	status, body = asks(t, open, "http://localhost/v1/me", it)
	assert.Equalf(t, 401, status, "where no keys are taken %s", body)
	ws, _, err := (&websocket.Dialer{Subprotocols: []string{"pawl.v1", "pawl.ticket." + it}}).DialContext(t.Context(),
		"ws"+strings.TrimPrefix(bob.URL(), "http")+"/v1/stream", nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ws.Close() })
	err = WithKeys(t.Context(), ann.config, func(ctx context.Context, table *apikey.Table) error {
		_, err := table.Revoke(ctx, "", key.ID, "test")
		return err
	})
	require.NoError(t, err)
	require.NoError(t, ws.SetReadDeadline(time.Now().Add(await.Patience)))
	_, _, err = ws.ReadMessage()
	assert.True(t, websocket.IsCloseError(err, 4401), err)
	for _, s := range []*Service{ann, bob} {
		for _, credential := range []string{it, text} {
			await.Eventually(t, "it is refused", func() bool { status, _ := asks(t, s, "/v1/me", credential); return status == 401 })
		}
	}
}
