package service

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		status, body := schedule(t, s, c.credential, c.scope, c.key, 3*time.Second)
		require.Equalf(t, 202, status, "%s %s", c.key, body)
	}
	for query, want := range map[string]int{"actor=gone&proof=" + gone.ID: 2, "proof=ticket+key+" + gone.ID: 1, "actor=gone": 2, "": 3,
		"actor=good&proof=" + gone.ID: 0, "actor=go": 0, "status=scheduled&workflow=order&proof=" + gone.ID: 2} {
		_, body := asks(t, s, "/v1/ops/commands?"+query, reader)
		assert.Truef(t, strings.Count(body, `"proof":"`) == want && strings.Count(body, `"actor":"`) == want && (want != 2 ||
			strings.Contains(body, `"actor":"gone","proof":"ticket key `+gone.ID+`"`)),
			"%s: %s", query, body)
	}
	_, body := asks(t, s, "/v1/commands/gone:later/revoked", reader)
	assert.Contains(t, body, `"proof":"key `+gone.ID+`"`, "the status for an operator")
	_, body = asks(t, s, "/v1/commands/gone:later/revoked", revoked)
	assert.NotContains(t, body, `"proof"`, "the status for a reader")
	revoke(t, s, gone.ID)
	for _, key := range []string{"revoked", "passed-on"} {
		text := ended(t, s, reader, "gone:later", key)
		assert.Truef(t, strings.Contains(text, `"code":"credential_ended"`) && strings.Contains(text, `"status":"failed_final"`),
			"%s: %s", key, text)
	}
	assert.Contains(t, ended(t, s, reader, "good:later", "good"), `"status":"succeeded"`, "good")
}

func TestScheduledCommandOfDroppedTicket(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys = true })
	_, key := makeKey(t, s, "gateway", "read submit operate")
	dropped := ticketWith(t, s, key, "submit:order")
	status, body := schedule(t, s, dropped, "gateway:later", "dropped", time.Second)
	require.Equal(t, 202, status, body)
	require.NoError(t, RotateTicketKeys(t.Context(), s.config, true))
	assert.Contains(t, ended(t, s, key, "gateway:later", "dropped"), `"code":"credential_ended"`)
}

func TestScheduledAfterTheCredentialEnds(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys = true })
	_, key := makeKey(t, s, "gateway", "read submit")
	it := ticketWith(t, s, key, "submit:order")
	status, body := schedule(t, s, it, "gateway:later", "tomorrow", 24*time.Hour)
	assert.Truef(t, status == 403 && strings.Contains(body, "ends before"), "with a ticket: %d %s", status, body)
	status, body = schedule(t, s, key, "gateway:later", "tomorrow", 24*time.Hour)
	assert.Equalf(t, 202, status, "with the key %s", body)
}

func TestKeepScheduledRunsCommandsOfRevokedKeys(t *testing.T) {
	t.Parallel()
	s := service(t, func(c *Config) { c.Auth.Keys, c.Auth.KeepScheduled = true, true })
	_, reader := makeKey(t, s, "reader", "read operate")
	gone, revoked := makeKey(t, s, "gone", "read submit")
	status, body := schedule(t, s, ticketWith(t, s, revoked, "submit:order"), "gone:later", "later", 24*time.Hour)
	assert.Equal(t, 202, status, body)
	status, body = schedule(t, s, revoked, "gone:later", "soon", time.Second)
	require.Equal(t, 202, status, body)
	revoke(t, s, gone.ID)
	assert.Contains(t, ended(t, s, reader, "gone:later", "soon"), `"status":"succeeded"`)
}

func revoke(t *testing.T, s *Service, id string) {
	t.Helper()
	err := WithKeys(t.Context(), s.config, func(ctx context.Context, table *apikey.Table) error {
		_, err := table.Revoke(ctx, "", id, "test")
		return err
	})
	require.NoError(t, err)
}

// ticketWith asks for a ticket with some grants.
func ticketWith(t *testing.T, s *Service, credential, grants string) string {
	t.Helper()
	return ticketFor(t, s, credential, fmt.Sprintf(`{"grants":[%q],"seconds":3600}`, grants))
}
