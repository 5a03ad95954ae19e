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
	if k.Grants, err = auth.ParseGrants(grants); err != nil {
		t.Fatal(err)
	}
	var made apikey.Key
	var text string
	err = WithKeys(t.Context(), s.config, func(ctx context.Context, table *apikey.Table) error {
		made, text, err = table.Create(ctx, k)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
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
		if status, body := asks(t, s, c.path, c.credential); status != c.status || !strings.Contains(body, c.has) {
			t.Errorf("%s: %d %.300s", c.path, status, body)
		}
	}
	only := service(t, func(c *Config) { c.Auth.Keys, c.Database = true, s.config.Database })
	if status, body := asks(t, only, "/v1/instances", idp.Token(nil)); status != 401 || !strings.Contains(body, "no credential of a kind") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := asks(t, only, "/v1/instances", other); status != 200 {
		t.Errorf("a key is answered with %d", status)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+credential)
		r.Header.Set("Idempotency-Key", "k")
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		} else if strings.HasSuffix(address, "/v1/events") {
			r.Header.Set("Accept", "text/event-stream")
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	if r := as("POST", here.URL()+"/v1/workflows/order/place", boss, cart); r.StatusCode != 201 {
		t.Fatal(r.Status)
	}
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(there.URL(), "http")+"/v1/stream",
		http.Header{"Authorization": {"Bearer " + text}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","id":"a","after":0}`)); err != nil {
		t.Fatal(err)
	}
	for message := ""; !strings.Contains(message, `"caught_up"`); {
		_, text, err := ws.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		message = string(text)
	}
	events := bufio.NewScanner(as("GET", there.URL()+"/v1/events", text, "").Body)
	for events.Scan() && !strings.HasPrefix(events.Text(), "id: ") {
	}

	began := time.Now()
	if r := as("DELETE", here.URL()+"/v1/keys/"+k.ID, boss, ""); r.StatusCode != 204 {
		t.Fatal(r.Status)
	}
	if status, body := asks(t, here, "/v1/me", text); status != 401 || !strings.Contains(body, "revoked") {
		t.Errorf("where it was revoked it is answered with %d %s", status, body)
	}
	for err == nil {
		_, _, err = ws.ReadMessage()
	}
	if closed, is := errors.AsType[*websocket.CloseError](err); !is || closed.Code != 4401 ||
		!strings.HasSuffix(closed.Text, "resume after 1") {
		t.Errorf("the WebSocket ends with %v", err)
	}
	t.Logf("the WebSocket ended after %s", time.Since(began))
	end := ""
	for events.Scan() {
		end += events.Text() + "\n"
	}
	if !strings.Contains(end, "event: unauthorized\nid: 1\n") {
		t.Errorf("the event stream ends with %q", end)
	}
	await.Eventually(t, "it is refused there", func() bool { status, _ := asks(t, there, "/v1/me", text); return status == 401 })
	t.Logf("all is over after %s", time.Since(began))
	if status, _ := asks(t, there, "/v1/me", boss); status != 200 {
		t.Errorf("another key is answered with %d", status)
	}
}

// Where it was used last is written at the end, too.
func TestTheLastUseOfAKeyIsWrittenWhenTheServiceStops(t *testing.T) {
	url := pgtest.URL(t)
	s := service(t, func(c *Config) { c.Auth.Keys, c.Database = true, url })
	k, text := makeKey(t, s, "robot", "read")
	if status, _ := asks(t, s, "/v1/me", text); status != 200 {
		t.Fatal(status)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := WithKeys(t.Context(), s.config, func(ctx context.Context, table *apikey.Table) error {
		k, err := table.Get(ctx, "", k.ID)
		if k.LastUsedAt.IsZero() {
			t.Error("nobody has used it")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
