package cli

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/auth/login"
	"github.com/pawlhq/pawl/engine"
)

func authFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "auth.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAuthFile(t *testing.T) {
	t.Setenv(variableOfLogin, "s")
	for text, want := range map[string]service.Auth{
		`{"jwt":{"issuer":"i","audience":["a"],"algorithms":["RS256"],"jwks":"https://idp.example/keys","leeway":"0s","survive":"2h",
			"claims":{"tenant":"org","roles":"realm_access.roles"},"grants":["read","submit:order/pay"]}}`: {
			JWT: &jwt.Config{Issuer: "i", Audience: []string{"a"}, Algorithms: []string{"RS256"}, JWKS: "https://idp.example/keys", Leeway: -1,
				Survive: 2 * time.Hour, Claims: jwt.Claims{Tenant: "org", Roles: "realm_access.roles"},
				Grants: auth.Grants{{Right: auth.Read}, {Right: auth.Submit, Target: auth.Target{Workflow: "order", Transition: "pay"}}}}},
		`{"keys":true}`: {Keys: true},
		`{"jwt":{"issuer":"https://i","login":{"client_id":"console","scopes":["a","b"],"discovery":"https://d"}}}`: {
			JWT:   &jwt.Config{Issuer: "https://i"},
			Login: &login.Config{Issuer: "https://i", ClientID: "console", ClientSecret: "s", Scopes: []string{"a", "b"}, Discovery: "https://d"}},
	} {
		got, err := authOf(authFile(t, text))
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for want, text := range map[string]string{
		`has no "jwt"`:           `{"keys":false}`,
		"unknown object member":  `{"jwt":{"isuer":"i"}}`,
		"is not a duration such": `{"jwt":{"leeway":"1"}}`,
		"begin with a right":     `{"jwt":{"grants":["write"]}}`,
		"PAWL_JWT_SECRET":        `{"jwt":{"algorithms":["HS256"]}}`,
		"duplicate":              `{"keys":false,"keys":true}`,
		"invalid UTF-8":          "{\"jwt\":{\"issuer\":\"\xff\"}}",
		"unexpected EOF":         `{"keys":true`,
		"--auth":                 `no`,
	} {
		_, err := authOf(authFile(t, text))
		assert.ErrorContains(t, err, want, text)
	}
	_, err := authOf("/no/such/file")
	assert.Error(t, err)
	t.Setenv(variableOfSecret, "s")
	got, err := authOf(authFile(t, `{"jwt":{}}`))
	assert.NoError(t, err)
	assert.Equal(t, "s", string(got.JWT.Secret))
}

func TestCanI(t *testing.T) {
	a, err := api.New(&engine.Engine{}, api.Config{Identify: api.Bearer(func(_ context.Context, token string) (auth.Principal, error) {
		if token == "ticket" {
			return auth.Principal{Tenant: "acme", Actor: "ann", Grants: auth.Grants{{Right: auth.Read, Target: auth.Target{Workflow: "order"}}},
				Proof: auth.Proof{Kind: auth.Ticket, By: "key k"}, Until: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)}, nil
		}
		if token != "good" {
			return auth.Principal{}, auth.Refuse(auth.Expired, "the token has expired")
		}
		return auth.Principal{Tenant: "acme", Actor: "ann", Grants: auth.Grants{{Right: auth.Read}}}, nil
	})})
	require.NoError(t, err)
	server := httptest.NewServer(a)
	defer server.Close()
	for _, c := range []struct{ token, grant, out, problem string }{
		{"good", "read:order", "ann of acme () has the grants read\nyes, read:order: by read\n", ""},
		{"good", "submit", "ann of acme () has the grants read\n", "no, not submit: no grant gives this right"},
		{"ticket", "read", "ann of acme (ticket key k) has the grants read:order until 2030-01-02T00:00:00Z\n",
			"no, not read: the grants with this right are narrower"},
		{"bad", "read", "", "unauthorized: the token has expired"},
		{"", "read", "", "unauthorized: a credential is required"},
		{"good", "everything", "", "begin with a right"},
	} {
		t.Setenv(flags.EnvToken, c.token)
		code, stdout, stderr := run(t.Context(), "auth", "can-i", c.grant, "--server", server.URL)
		assert.Equal(t, c.out, stdout)
		assert.Equal(t, c.problem == "", code == 0, stderr)
		assert.Contains(t, stderr, c.problem)
		if c.out != "" {
			_, stdout, _ := run(t.Context(), "auth", "can-i", c.grant, "--server", server.URL, "-o", "json")
			assert.Contains(t, stdout, fmt.Sprintf(`"allowed": %t`, c.problem == ""), c.grant)
		}
	}
}
