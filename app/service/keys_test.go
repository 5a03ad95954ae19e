package service

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// makeKey makes a key of acme as "pawl keys create" does.
func makeKey(t *testing.T, s *Service, name, grants string) (apikey.Key, string) {
	t.Helper()
	k := apikey.Key{Tenant: "acme", Name: name, Actor: name, CreatedBy: "test"}
	var err error
	k.Grants, err = auth.ParseGrants(grants)
	require.NoError(t, err)
	var made apikey.Key
	var text string
	err = WithKeys(t.Context(), s.config, func(ctx context.Context, table *apikey.Table) error {
		made, text, err = table.Create(ctx, k)
		return err
	})
	require.NoError(t, err)
	return made, text
}

func TestAServiceTakesKeysBesideTokens(t *testing.T) {
	idp := authtest.NewProvider(t)
	idp.Down(true)
	s := service(t, func(c *Config) { c.Auth.Keys, c.Auth.JWT = true, tokensOf(idp) })
	k, text := makeKey(t, s, "robot", "read operate:all")
	_, other := makeKey(t, s, "other", "read")
	for _, c := range []struct {
		path, credential string
		status           int
		has              string
	}{
		{"/v1/instances", text, 200, ""},
		{"/v1/me?can=submit", text, 200, `"by":"` + k.ID + `"`},
		{"/v1/ops/keys", other, 403, "operate"},
		{"/v1/instances", text[:len(text)-1], 401, "mistyped"},
		{"/v1/instances", "pawlx", 401, "JSON Web Token"},
		{"/v1/instances", idp.Token(nil), 503, "identity provider"},
		{"/readyz", "", 200, `"warning":"the keys of the identity provider cannot be fetched`}, // keys are taken all the same
		{"/metrics", text, 200, "pawl_auth_api_keys 2"},
		{"/metrics", text, 200, "pawl_auth_api_key_lookups_total 2"},
		{"/metrics", text, 200, "pawl_auth_api_key_look_failures_total 0"},
		{"/metrics", text, 200, `pawl_auth_refused_total{reason="malformed"} 2`},
	} {
		status, body := asks(t, s, c.path, c.credential)
		assert.Truef(t, status == c.status && strings.Contains(body, c.has), "%s: %d %.300s", c.path, status, body)
	}
	only := service(t, func(c *Config) { c.Auth.Keys, c.Database = true, s.config.Database })
	status, body := asks(t, only, "/v1/instances", idp.Token(nil))
	assert.Truef(t, status == 401 && strings.Contains(body, "kind of credential is not accepted"), "%d %s", status, body)
	status, _ = asks(t, only, "/v1/instances", other)
	assert.Equal(t, 200, status, "a key is answered with")
}

// A key that is revoked on one node is refused by the other one, and what is open with it there ends.
func TestARevokedKeyIsRefusedByTheOtherNode(t *testing.T) {
	url := pgtest.URL(t)
	taking := func(c *Config) { c.Auth.Keys, c.Database = true, url }
	here, there := service(t, taking), service(t, taking)
	_, boss := makeKey(t, here, "boss", "keys submit")
	k, text := makeKey(t, here, "robot", "read stream")
	as := func(method, address, credential, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+credential)
		r.Header.Set("Idempotency-Key", "k")
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		} else if strings.HasSuffix(address, "/v1/events") {
			r.Header.Set("Accept", "text/event-stream")
		}
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	r := as("POST", here.URL()+"/v1/workflows/order/place", boss, cart)
	require.Equal(t, 201, r.StatusCode, r.Status)
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(there.URL(), "http")+"/v1/stream",
		http.Header{"Authorization": {"Bearer " + text}})
	require.NoError(t, err)
	defer func() { _ = ws.Close() }()
	require.NoError(t, ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","id":"a","after":0}`)))
	for message := ""; !strings.Contains(message, `"caught_up"`); {
		_, text, err := ws.ReadMessage()
		require.NoError(t, err)
		message = string(text)
	}
	events := bufio.NewScanner(as("GET", there.URL()+"/v1/events", text, "").Body)
	for events.Scan() && !strings.HasPrefix(events.Text(), "id: ") {
	}

	began := time.Now()
	r = as("DELETE", here.URL()+"/v1/keys/"+k.ID, boss, "")
	require.Equal(t, 204, r.StatusCode, r.Status)
	status, body := asks(t, here, "/v1/me", text)
	assert.Truef(t, status == 401 && strings.Contains(body, "revoked"), "where it was revoked it is answered with %d %s", status, body)
	for err == nil {
		_, _, err = ws.ReadMessage()
	}
	closed, is := errors.AsType[*websocket.CloseError](err)
	assert.Truef(t, is && closed.Code == 4401 && strings.HasSuffix(closed.Text, "resume after 1"), "the WebSocket ends with %v", err)
	t.Logf("the WebSocket ended after %s", time.Since(began))
	end := ""
	for events.Scan() {
		end += events.Text() + "\n"
	}
	assert.Contains(t, end, "event: unauthorized\nid: 1\n", "the event stream ends with")
	await.Eventually(t, "it is refused there", func() bool { status, _ := asks(t, there, "/v1/me", text); return status == 401 })
	t.Logf("all is over after %s", time.Since(began))
	status, _ = asks(t, there, "/v1/me", boss)
	assert.Equal(t, 200, status, "another key is answered with")
}

// Where it was used last is written at the end, too.
func TestStopSavesLastUseOfKeys(t *testing.T) {
	url := pgtest.URL(t)
	s := service(t, func(c *Config) { c.Auth.Keys, c.Database = true, url })
	k, text := makeKey(t, s, "robot", "read")
	status, _ := asks(t, s, "/v1/me", text)
	require.Equal(t, 200, status)
	require.NoError(t, s.Stop(t.Context()))
	err := WithKeys(t.Context(), s.config, func(ctx context.Context, table *apikey.Table) error {
		k, err := table.Get(ctx, "", k.ID)
		assert.False(t, k.LastUsedAt.IsZero(), "nobody has used it")
		return err
	})
	assert.NoError(t, err)
}
