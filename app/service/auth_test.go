package service

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/internal/testkit/await"
)

func tokensOf(idp *authtest.Provider) *jwt.Config {
	return &jwt.Config{Issuer: authtest.Issuer, Audience: []string{authtest.Audience}, Algorithms: []string{"ES256"}, JWKS: idp.URL}
}

func asks(t *testing.T, s *Service, path, token string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestAServiceTakesTokens(t *testing.T) {
	idp := authtest.NewProvider(t)
	s := service(t, func(c *Config) {
		c.Auth.JWT = tokensOf(idp)
		c.Auth.JWT.Grants = auth.Grants{{Right: auth.Read}}
	})
	for _, c := range []struct {
		path, token string
		status      int
		has         string
	}{
		{"/v1/instances", "", 401, "a credential is required"},
		{"/v1/instances", idp.Token(map[string]any{"aud": "x"}), 401, "not for this audience"},
		{"/v1/instances", idp.Token(nil), 200, ""},
		{"/v1/ops/keys", idp.Token(nil), 403, `this takes the grant \"operate\"`},
		{"/v1/ops/keys", idp.Token(map[string]any{"scope": "operate"}), 200, ""},
		{"/v1/me", idp.Token(nil), 200, `"actor":"ann"`},
		{"/healthz", "", 200, ""},
		{"/metrics", idp.Token(map[string]any{"scope": "operate:all"}), 200, `pawl_auth_refused_total{reason="wrong_audience"} 1`},
		{"/metrics", idp.Token(map[string]any{"scope": "operate:all"}), 200, "pawl_auth_keys 1"},
	} {
		status, body := asks(t, s, c.path, c.token)
		assert.Truef(t, status == c.status && strings.Contains(body, c.has), "%s: %d %.300s", c.path, status, body)
	}
}

func TestAServiceWithoutKeysIsNotReady(t *testing.T) {
	idp := authtest.NewProvider(t)
	idp.Down(true)
	s := service(t, func(c *Config) { c.Auth.JWT = tokensOf(idp) })
	for _, path := range []string{"/readyz", "/v1/instances"} {
		status, body := asks(t, s, path, idp.Token(nil))
		assert.Truef(t, status == 503 && strings.Contains(body, "identity provider"), "%s: %d %s", path, status, body)
	}
}

func TestAServiceTellsOfAProviderThatIsDown(t *testing.T) {
	idp := authtest.NewProvider(t)
	s := service(t, func(c *Config) { c.Auth.JWT = tokensOf(idp) })
	await.Eventually(t, "it is ready", func() bool { status, _ := asks(t, s, "/readyz", ""); return status == 200 })
	idp.Down(true)
	asks(t, s, "/v1/instances", authtest.NewKey(t, "new", "ES256").Sign(t, authtest.Claims(nil))) // which has them read
	await.Eventually(t, "it warns", func() bool {
		status, body := asks(t, s, "/readyz", "")
		return status == 200 && strings.Contains(body, `"warning":"the keys of the identity provider could not be fetched since`)
	})
}

func TestAuthThatWouldTakeTooMuchStopsTheStart(t *testing.T) {
	c := Config{Auth: Auth{JWT: &jwt.Config{Issuer: authtest.Issuer, Algorithms: []string{"RS256"}, JWKS: "https://idp.example"}}}
	_, err := Start(t.Context(), c)
	_, is := err.(*usage.Error)
	assert.True(t, is && strings.Contains(err.Error(), "an audience is required"), err)
}
