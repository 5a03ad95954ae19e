package service

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/internal/testkit/await"
)

// schedule sends a command for a time from now with a credential.
func schedule(t *testing.T, s *Service, credential, scope, key string, after time.Duration) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/workflows/order/place", strings.NewReader(cart))
	r.Header.Set("Authorization", "Bearer "+credential)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Idempotency-Scope", scope)
	r.Header.Set("Pawl-Not-Before", time.Now().Add(after).UTC().Format(time.RFC3339Nano))
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// ended waits until a command has ended, and returns its status.
func ended(t *testing.T, s *Service, reader, scope, key string) (text string) {
	t.Helper()
	await.Eventually(t, "the command has ended", func() bool {
		_, text = asks(t, s, "/v1/commands/"+scope+"/"+key, reader)
		return !strings.Contains(text, `"status":"pending"`) && !strings.Contains(text, `"status":"processing"`)
	})
	return text
}

func TestScheduledCommandOfRevokedKey(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys = true })
	_, reader := makeKey(t, s, "reader", "read operate")
	gone, revoked := makeKey(t, s, "gone", "read submit")
	_, good := makeKey(t, s, "good", "read submit")
	passedOn := ticketWith(t, s, revoked, "submit:order")
	for _, c := range []struct{ credential, scope, key string }{
		{revoked, "gone:later", "revoked"}, {passedOn, "gone:later", "passed-on"}, {good, "good:later", "good"},
	} {
		if status, body := schedule(t, s, c.credential, c.scope, c.key, 3*time.Second); status != 202 {
			t.Fatalf("%s: %d %s", c.key, status, body)
		}
	}
	for query, want := range map[string]int{"actor=gone&proof=" + gone.ID: 2, "proof=ticket+key+" + gone.ID: 1, "actor=gone": 2, "": 3,
		"actor=good&proof=" + gone.ID: 0, "actor=go": 0, "status=scheduled&workflow=order&proof=" + gone.ID: 2} {
		_, body := asks(t, s, "/v1/ops/commands?"+query, reader)
		if strings.Count(body, `"proof":"`) != want || strings.Count(body, `"actor":"`) != want ||
			want == 2 && !strings.Contains(body, `"actor":"gone","proof":"ticket key `+gone.ID+`"`) {
			t.Errorf("%s: %s", query, body)
		}
	}
	if _, body := asks(t, s, "/v1/commands/gone:later/revoked", reader); !strings.Contains(body, `"proof":"key `+gone.ID+`"`) {
		t.Errorf("the status for an operator: %s", body)
	}
	if _, body := asks(t, s, "/v1/commands/gone:later/revoked", revoked); strings.Contains(body, `"proof"`) {
		t.Errorf("the status for a reader: %s", body)
	}
	revoke(t, s, gone.ID)
	for _, key := range []string{"revoked", "passed-on"} {
		if text := ended(t, s, reader, "gone:later", key); !strings.Contains(text, `"code":"credential_ended"`) ||
			!strings.Contains(text, `"status":"failed_final"`) {
			t.Errorf("%s: %s", key, text)
		}
	}
	if text := ended(t, s, reader, "good:later", "good"); !strings.Contains(text, `"status":"succeeded"`) {
		t.Errorf("good: %s", text)
	}
}

func TestScheduledCommandOfDroppedTicket(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys = true })
	_, key := makeKey(t, s, "gateway", "read submit operate")
	dropped := ticketWith(t, s, key, "submit:order")
	if status, body := schedule(t, s, dropped, "gateway:later", "dropped", time.Second); status != 202 {
		t.Fatal(status, body)
	}
	if err := RotateTicketKeys(t.Context(), s.config, true); err != nil {
		t.Fatal(err)
	}
	if text := ended(t, s, key, "gateway:later", "dropped"); !strings.Contains(text, `"code":"credential_ended"`) {
		t.Error(text)
	}
}

func TestScheduledAfterTheCredentialEnds(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys = true })
	_, key := makeKey(t, s, "gateway", "read submit")
	it := ticketWith(t, s, key, "submit:order")
	if status, body := schedule(t, s, it, "gateway:later", "tomorrow", 24*time.Hour); status != 403 || !strings.Contains(body, "ends before") {
		t.Errorf("with a ticket: %d %s", status, body)
	}
	if status, body := schedule(t, s, key, "gateway:later", "tomorrow", 24*time.Hour); status != 202 {
		t.Errorf("with the key: %d %s", status, body)
	}
}

func TestKeepScheduledRunsCommandsOfRevokedKeys(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys, c.Auth.KeepScheduled = true, true })
	_, reader := makeKey(t, s, "reader", "read operate")
	gone, revoked := makeKey(t, s, "gone", "read submit")
	if status, body := schedule(t, s, ticketWith(t, s, revoked, "submit:order"), "gone:later", "later", 24*time.Hour); status != 202 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := schedule(t, s, revoked, "gone:later", "soon", time.Second); status != 202 {
		t.Fatal(status, body)
	}
	revoke(t, s, gone.ID)
	if text := ended(t, s, reader, "gone:later", "soon"); !strings.Contains(text, `"status":"succeeded"`) {
		t.Error(text)
	}
}

func revoke(t *testing.T, s *Service, id string) {
	t.Helper()
	err := WithKeys(t.Context(), s.config, func(ctx context.Context, table *apikey.Table) error {
		_, err := table.Revoke(ctx, "", id, "test")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ticketWith asks for a ticket with some grants.
func ticketWith(t *testing.T, s *Service, credential, grants string) string {
	t.Helper()
	return ticketFor(t, s, credential, fmt.Sprintf(`{"grants":[%q],"seconds":3600}`, grants))
}
