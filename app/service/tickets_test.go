package service

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

const onTicket = `{"grants":["read:order#A-17","stream:order#A-17"],"seconds":3600}`

func ticketOf(t *testing.T, s *Service, token string) string {
	t.Helper()
	return ticketFor(t, s, token, onTicket)
}

func ticketFor(t *testing.T, s *Service, token, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/tickets", strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	var made struct{ Ticket string }
	err = json.NewDecoder(response.Body).Decode(&made)
	require.Truef(t, err == nil && response.StatusCode == 201, "%d %v", response.StatusCode, err)
	return made.Ticket
}

// Any node takes a ticket; when all keys are dropped, its streams end on every node.
func TestATicketOfOneNodeIsTakenByAnother(t *testing.T) {
	idp := authtest.NewProvider(t)
	url := pgtest.URL(t)
	guarded := func(c *Config) {
		c.Database, c.Schema, c.Auth.JWT = url, "tickets", tokensOf(idp)
		c.Auth.JWT.Grants = auth.Grants{{Right: auth.Read}, {Right: auth.Stream}}
	}
	ann, bob := service(t, guarded), service(t, guarded)
	text := ticketOf(t, ann, idp.Token(nil))
	status, body := asks(t, bob, "/v1/me", text)
	assert.Truef(t, status == 200 && strings.Contains(body, `"kind":"ticket","by":"jwt `+authtest.Issuer), "%d %s", status, body)
	status, _ = asks(t, bob, "/v1/instances", text)
	assert.Equal(t, 403, status, "it may see everything")
	ws, _, err := (&websocket.Dialer{Subprotocols: []string{"pawl.v1", "pawl.ticket." + text}}).DialContext(t.Context(),
		"ws"+strings.TrimPrefix(bob.URL(), "http")+"/v1/stream", nil)
	require.NoError(t, err)
	defer ws.Close()
	// It takes the database's clock by reading the keys, so even a second counts on both.
	require.NoError(t, RotateTicketKeys(context.Background(), Config{Database: url, Schema: "tickets", Log: quiet}, true))
	require.NoError(t, ws.SetReadDeadline(time.Now().Add(await.Patience)))
	_, _, err = ws.ReadMessage()
	assert.True(t, websocket.IsCloseError(err, 4401), err)
	for _, s := range []*Service{ann, bob} {
		await.Eventually(t, "it is refused", func() bool { status, _ := asks(t, s, "/v1/me", text); return status == 401 })
	}
	status, _ = asks(t, bob, "/v1/me", ticketOf(t, ann, idp.Token(nil)))
	assert.Equal(t, 200, status, "a new one is refused")
}

func TestAServiceTakesTicketsWithoutAuthentication(t *testing.T) {
	s := service(t)
	text := ticketOf(t, s, "")
	for _, c := range []struct {
		path, credential string
		status           int
	}{{"/v1/instances", "", 200}, {"/v1/instances", text, 403}, {"/v1/workflows/order/keys/A-17", text, 404},
		{"/v1/instances", text[:len(text)-1], 401}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+c.path, http.NoBody)
		require.NoError(t, err)
		if c.credential != "" {
			r.Header.Set("Authorization", "Bearer "+c.credential)
		}
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		var body bytes.Buffer
		_, _ = body.ReadFrom(response.Body)
		_ = response.Body.Close()
		assert.Equalf(t, c.status, response.StatusCode, "%s %s", c.path, body.String())
	}
	if err := RotateTicketKeys(t.Context(), Config{Schema: "No"}, false); err == nil {
		t.Error("a schema that cannot be")
	} else if _, is := err.(*usage.Error); !is {
		t.Error(err)
	}
}
