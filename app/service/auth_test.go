package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func tokensOf(idp *authtest.Provider) *jwt.Config {
	return &jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience}, Algorithms: []string{"ES256"}, JWKS: idp.URL}
}

// answer is a request with the answer that is expected.
type answer struct {
	path, credential string
	status           int
	has              string
}

func check(t *testing.T, s *Service, answers ...answer) {
	t.Helper()
	for _, a := range answers {
		status, body := asks(t, s, a.path, a.credential)
		assert.Equal(t, a.status, status, a.path)
		assert.Contains(t, body, a.has, a.path)
	}
}

func TestServiceAcceptsTokens(t *testing.T) {
	idp := authtest.NewProvider(t)
	s := service(t, func(c *Config) {
		c.Auth.JWT = tokensOf(idp)
		c.Auth.JWT.Grants = auth.Grants{{Right: auth.Read}}
	})
	operator := idp.Token(map[string]any{"scope": "operate:all"})
	check(t, s,
		answer{"/v1/instances", "", 401, "a credential is required"},
		answer{"/v1/instances", idp.Token(map[string]any{"aud": "x"}), 401, "not for this audience"},
		answer{"/v1/instances", idp.Token(nil), 200, ""},
		answer{"/v1/ops/keys", idp.Token(nil), 403, `this takes the grant \"operate\"`},
		answer{"/v1/ops/keys", idp.Token(map[string]any{"scope": "operate"}), 200, ""},
		answer{"/v1/me", idp.Token(nil), 200, `"actor":"ann"`},
		answer{"/healthz", "", 200, ""},
		answer{"/metrics", operator, 200, `pawl_auth_refused_total{reason="wrong_audience"} 1`},
		answer{"/metrics", operator, 200, "pawl_auth_keys 1"})
	idp.Down(true)
	asks(t, s, "/v1/instances", authtest.NewKey(t, "new", "ES256").Sign(t, authtest.Claims(nil))) // an unknown key causes a fetch
	await.Eventually(t, "a warning", func() bool {
		status, body := asks(t, s, "/readyz", "")
		return status == 200 && strings.Contains(body, `"warning":"the keys of the identity provider could not be fetched since`)
	})
	unready := service(t, func(c *Config) { c.Auth.JWT = tokensOf(idp) })
	check(t, unready, answer{"/readyz", "", 503, "identity provider"}, answer{"/v1/instances", idp.Token(nil), 503, "identity provider"})
}

// makeKey creates a key of acme as "pawl keys create" does.
func makeKey(t *testing.T, s *Service, name, grants string) (apikey.Key, string) {
	t.Helper()
	k := apikey.Key{Tenant: "acme", Name: name, Actor: name, CreatedBy: "test"}
	var err error
	k.Grants, err = auth.ParseGrants(grants)
	require.NoError(t, err)
	var text string
	keys(t, s, func(ctx context.Context, table *apikey.Table) error {
		k, text, err = table.Create(ctx, k)
		return err
	})
	return k, text
}

func revoke(t *testing.T, s *Service, id string) {
	t.Helper()
	keys(t, s, func(ctx context.Context, table *apikey.Table) error {
		_, err := table.Revoke(ctx, "", id, "test")
		return err
	})
}

func keys(t *testing.T, s *Service, use func(context.Context, *apikey.Table) error) {
	t.Helper()
	require.NoError(t, WithKeys(t.Context(), s.config, use))
}

// ticketFor returns a ticket for grants such as "read:order".
func ticketFor(t *testing.T, s *Service, credential, grants string) string {
	t.Helper()
	list, err := json.Marshal(strings.Fields(grants))
	require.NoError(t, err)
	status, body := send(t, s, "POST", "/v1/tickets", credential, fmt.Sprintf(`{"grants":%s,"seconds":3600}`, list))
	require.Equal(t, 201, status, body)
	var made struct{ Ticket string }
	require.NoError(t, json.Unmarshal([]byte(body), &made))
	return made.Ticket
}

func TestServiceAcceptsKeysBesideTokens(t *testing.T) {
	idp := authtest.NewProvider(t)
	idp.Down(true)
	s := service(t, func(c *Config) { c.Auth.Keys, c.Auth.JWT = true, tokensOf(idp) })
	k, text := makeKey(t, s, "robot", "read operate:all")
	o, other := makeKey(t, s, "other", "read")
	check(t, s,
		answer{"/v1/instances", text, 200, ""},
		answer{"/v1/me?can=submit", text, 200, `"by":"` + k.ID + `"`},
		answer{"/v1/ops/keys", other, 403, "operate"},
		answer{"/v1/instances", text[:len(text)-1], 401, "mistyped"},
		answer{"/v1/instances", "pawlx", 401, "JSON Web Token"},
		answer{"/v1/instances", idp.Token(nil), 503, "identity provider"},
		answer{"/readyz", "", 200, `"warning":"the keys of the identity provider cannot be fetched`},
		answer{"/metrics", text, 200, "pawl_auth_api_keys 2"},
		answer{"/metrics", text, 200, "pawl_auth_api_key_lookups_total 2"},
		answer{"/metrics", text, 200, "pawl_auth_api_key_look_failures_total 0"},
		answer{"/metrics", text, 200, `pawl_auth_refused_total{reason="malformed"} 2`})
	only := service(t, func(c *Config) { c.Auth.Keys, c.Database = true, s.config.Database })
	check(t, only, answer{"/v1/instances", idp.Token(nil), 401, "kind of credential is not accepted"},
		answer{"/v1/instances", other, 200, ""})
	// The last use of a key is stored at the end.
	require.NoError(t, only.Stop(t.Context()))
	keys(t, s, func(ctx context.Context, table *apikey.Table) error {
		k, err := table.Get(ctx, "", o.ID)
		assert.False(t, k.LastUsedAt.IsZero())
		return err
	})
}

// webSocket opens a stream with a credential.
func webSocket(t *testing.T, s *Service, credential string) *websocket.Conn {
	t.Helper()
	header := http.Header{}
	if credential != "" {
		header.Set("Authorization", "Bearer "+credential)
	}
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.URL(), "http")+"/v1/stream", header)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ws.Close() })
	require.NoError(t, ws.SetReadDeadline(time.Now().Add(await.Patience)))
	return ws
}

// closedWith requires that a stream ends with a close code.
func closedWith(t *testing.T, ws *websocket.Conn, code int) (reason string) {
	t.Helper()
	for {
		if _, _, err := ws.ReadMessage(); err != nil {
			closed, ok := errors.AsType[*websocket.CloseError](err)
			require.True(t, ok, err)
			assert.Equal(t, code, closed.Code)
			return closed.Text
		}
	}
}

// A key that is revoked on one node is rejected by the others, with its tickets, and their streams end.
func TestRevokedKey_OtherNode(t *testing.T) {
	keyed := func(c *Config) { c.Auth.Keys = true }
	here := service(t, keyed)
	there := service(t, keyed, func(c *Config) { c.Database = here.config.Database })
	open := service(t, func(c *Config) { c.Database = here.config.Database }) // trusts local callers, but takes no keys
	_, boss := makeKey(t, here, "boss", "keys submit")
	k, text := makeKey(t, here, "robot", "read stream")
	ticket := ticketFor(t, here, text, "read:order stream:order")
	status, body := send(t, here, "POST", "/v1/workflows/order/place", boss, cart)
	require.Equal(t, 201, status, body)
	check(t, there, answer{"/v1/me", ticket, 200, `"kind":"ticket","by":"key ` + k.ID + `"`})
	check(t, open, answer{"/v1/me", ticket, 401, ""})
	ws, ofTicket := webSocket(t, there, text), webSocket(t, there, ticket)
	require.NoError(t, ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","id":"a","after":0}`)))
	for message := ""; !strings.Contains(message, `"caught_up"`); {
		_, text, err := ws.ReadMessage()
		require.NoError(t, err)
		message = string(text)
	}
	stream := do(t, there, "GET", "/v1/events", http.Header{"Authorization": {"Bearer " + text}, "Accept": {"text/event-stream"}}, "")
	events := bufio.NewScanner(stream.Body)
	for events.Scan() && !strings.HasPrefix(events.Text(), "id: ") {
	}
	status, body = send(t, here, "DELETE", "/v1/keys/"+k.ID, boss, "")
	require.Equal(t, 204, status, body)
	check(t, here, answer{"/v1/me", text, 401, "revoked"})
	assert.Contains(t, closedWith(t, ws, 4401), "resume after 1")
	closedWith(t, ofTicket, 4401)
	end := ""
	for events.Scan() {
		end += events.Text() + "\n"
	}
	assert.Contains(t, end, "event: unauthorized\nid: 1\n")
	for _, credential := range []string{text, ticket} {
		await.Eventually(t, "a rejection", func() bool { status, _ := asks(t, there, "/v1/me", credential); return status == 401 })
	}
	check(t, there, answer{"/v1/me", boss, 200, ""})
}

// All nodes accept a ticket; after all keys are dropped, its streams end on every node.
func TestTickets_OtherNode(t *testing.T) {
	idp := authtest.NewProvider(t)
	url := pgtest.URL(t)
	guarded := func(c *Config) {
		c.Database, c.Schema, c.Auth.JWT = url, "tickets", tokensOf(idp)
		c.Auth.JWT.Grants = auth.Grants{{Right: auth.Read}, {Right: auth.Stream}}
	}
	ann, bob := service(t, guarded), service(t, guarded)
	text := ticketFor(t, ann, idp.Token(nil), "read:order#A-17 stream:order#A-17")
	check(t, bob, answer{"/v1/me", text, 200, `"kind":"ticket","by":"jwt ` + authtest.Issuer}, answer{"/v1/instances", text, 403, ""})
	ws := webSocket(t, bob, text)
	// The database's clock decides, so even a second counts on both nodes.
	require.NoError(t, RotateTicketKeys(context.Background(), Config{Database: url, Schema: "tickets", Log: quiet}, true))
	closedWith(t, ws, 4401)
	for _, s := range []*Service{ann, bob} {
		await.Eventually(t, "a rejection", func() bool { status, _ := asks(t, s, "/v1/me", text); return status == 401 })
	}
	check(t, bob, answer{"/v1/me", ticketFor(t, ann, idp.Token(nil), "read:order"), 200, ""})
}

func TestTickets_WithoutAuthentication(t *testing.T) {
	s := service(t)
	text := ticketFor(t, s, "", "read:order#A-17")
	check(t, s, answer{"/v1/instances", "", 200, ""}, answer{"/v1/instances", text, 403, ""},
		answer{"/v1/workflows/order/keys/A-17", text, 404, ""}, answer{"/v1/instances", text[:len(text)-1], 401, ""})
	assert.ErrorAs(t, RotateTicketKeys(t.Context(), Config{Schema: "No"}, false), new(*usage.Error))
}

// schedule sends a command to be decided after a while.
func schedule(t *testing.T, s *Service, credential, scope, key string, after time.Duration) (int, string) {
	t.Helper()
	return send(t, s, "POST", "/v1/workflows/order/place", credential, cart, "Idempotency-Key", key, "Idempotency-Scope", scope,
		"Pawl-Not-Before", time.Now().Add(after).UTC().Format(time.RFC3339Nano))
}

// ended waits until a scheduled command has ended, and returns its status.
func ended(t *testing.T, s *Service, reader, scope, key string) (text string) {
	t.Helper()
	await.Eventually(t, "the end of the command", func() bool {
		_, text = asks(t, s, "/v1/commands/"+scope+"/"+key, reader)
		return !strings.Contains(text, `"status":"pending"`) && !strings.Contains(text, `"status":"processing"`)
	})
	return text
}

func TestScheduled_RevokedKeyAndDroppedTicket(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys = true })
	_, reader := makeKey(t, s, "reader", "read operate submit")
	gone, revoked := makeKey(t, s, "gone", "read submit")
	status, body := schedule(t, s, ticketFor(t, s, revoked, "submit:order"), "gone:later", "tomorrow", 24*time.Hour)
	assert.Equal(t, 403, status)
	assert.Contains(t, body, "ends before")
	for _, c := range []struct{ credential, scope, key string }{{revoked, "gone:later", "revoked"},
		{ticketFor(t, s, revoked, "submit:order"), "gone:later", "passed-on"}, {reader, "reader:later", "good"}} {
		status, body := schedule(t, s, c.credential, c.scope, c.key, 3*time.Second)
		require.Equal(t, 202, status, body)
	}
	for query, want := range map[string]int{"actor=gone&proof=" + gone.ID: 2, "proof=ticket+key+" + gone.ID: 1, "actor=gone": 2, "": 3,
		"actor=reader&proof=" + gone.ID: 0, "actor=go": 0, "status=scheduled&workflow=order&proof=" + gone.ID: 2} {
		_, body := asks(t, s, "/v1/ops/commands?"+query, reader)
		assert.Equal(t, want, strings.Count(body, `"proof":"`), query)
	}
	_, body = asks(t, s, "/v1/commands/gone:later/revoked", reader)
	assert.Contains(t, body, `"proof":"key `+gone.ID+`"`)
	_, body = asks(t, s, "/v1/commands/gone:later/revoked", revoked)
	assert.NotContains(t, body, `"proof"`)
	revoke(t, s, gone.ID)
	for _, key := range []string{"revoked", "passed-on"} {
		text := ended(t, s, reader, "gone:later", key)
		assert.Contains(t, text, `"code":"credential_ended"`)
		assert.Contains(t, text, `"status":"failed_final"`)
	}
	assert.Contains(t, ended(t, s, reader, "reader:later", "good"), `"status":"succeeded"`)
	status, body = schedule(t, s, ticketFor(t, s, reader, "submit:order"), "reader:later", "dropped", time.Second)
	require.Equal(t, 202, status, body)
	require.NoError(t, RotateTicketKeys(t.Context(), s.config, true))
	assert.Contains(t, ended(t, s, reader, "reader:later", "dropped"), `"code":"credential_ended"`)
}

func TestKeepScheduledRunsCommandsOfRevokedKeys(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys, c.Auth.KeepScheduled = true, true })
	_, reader := makeKey(t, s, "reader", "read operate")
	gone, revoked := makeKey(t, s, "gone", "read submit")
	status, body := schedule(t, s, ticketFor(t, s, revoked, "submit:order"), "gone:later", "tomorrow", 24*time.Hour)
	assert.Equal(t, 202, status, body)
	status, body = schedule(t, s, revoked, "gone:later", "soon", time.Second)
	require.Equal(t, 202, status, body)
	revoke(t, s, gone.ID)
	assert.Contains(t, ended(t, s, reader, "gone:later", "soon"), `"status":"succeeded"`)
}
