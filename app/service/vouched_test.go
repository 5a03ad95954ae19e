package service

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// What was asked for with an API key is good for as long as the key is, on every node, and nowhere that takes no keys.
func TestATicketOfARevokedKeyIsRefused(t *testing.T) {
	url := pgtest.URL(t)
	keyed := func(c *Config) { c.Database, c.Auth.Keys = url, true }
	ann, bob := service(t, keyed), service(t, keyed)
	open := service(t, func(c *Config) { c.Database = url }) // it believes who is on this machine, but no ticket
	key, text := makeKey(t, ann, "gateway", "read:order stream:order")
	it := ticketOf(t, ann, text)
	if status, body := asks(t, bob, "/v1/me", it); status != 200 || !strings.Contains(body, `"kind":"ticket","by":"key `+key.ID+`"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := asks(t, open, "http://localhost/v1/me", it); status != 401 {
		t.Errorf("where no keys are taken: %d %s", status, body)
	}
	ws, _, err := (&websocket.Dialer{Subprotocols: []string{"pawl.v1", "pawl.ticket." + it}}).DialContext(t.Context(),
		"ws"+strings.TrimPrefix(bob.URL(), "http")+"/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	err = WithKeys(t.Context(), ann.config, func(ctx context.Context, table *apikey.Table) error {
		_, err := table.Revoke(ctx, "", key.ID, "test")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ws.SetReadDeadline(time.Now().Add(await.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, 4401) {
		t.Error(err)
	}
	for _, s := range []*Service{ann, bob} {
		for _, credential := range []string{it, text} {
			await.Eventually(t, "it is refused", func() bool { status, _ := asks(t, s, "/v1/me", credential); return status == 401 })
		}
	}
}
