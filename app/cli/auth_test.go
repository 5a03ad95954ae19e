package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/engine"
)

func authFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "auth.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAuthIsReadFromItsFile(t *testing.T) {
	got, err := authOf(authFile(t, `{"jwt":{"issuer":"i","audience":["a"],"algorithms":["RS256"],"jwks":"https://idp.example/keys",
		"leeway":"0s","survive":"2h","claims":{"tenant":"org","roles":"realm_access.roles"},"grants":["read","submit:order/pay"]}}`))
	require.NoError(t, err)
	if j := got.JWT; j.Issuer != "i" || j.JWKS == "" || j.Leeway != -1 || j.Survive != 2*time.Hour || j.Claims.Roles != "realm_access.roles" ||
		j.Grants.String() != "read submit:order/pay" || j.Secret != nil || j.Keys != nil {
		t.Errorf("%+v", j)
	}
	got, err = authOf(authFile(t, `{"keys":true}`))
	assert.Truef(t, err == nil && got.Keys && got.JWT == nil, "%+v, %v", got, err)
	t.Setenv(variableOfLogin, "s")
	got, err = authOf(authFile(t, `{"jwt":{"issuer":"https://i","login":{"client_id":"console","scopes":["a","b"],"discovery":"https://d"}}}`))
	if l := got.Login; err != nil || l.Issuer != "https://i" || l.ClientID != "console" || l.ClientSecret != "s" || len(l.Scopes) != 2 ||
		l.Discovery == "" {
		t.Errorf("%+v, %v", got.Login, err)
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
		if _, err := authOf(authFile(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err = authOf("/no/such/file")
	assert.Error(t, err, "a file that is not there is none")
	t.Setenv(variableOfSecret, "s")
	got, err = authOf(authFile(t, `{"jwt":{}}`))
	assert.Truef(t, err == nil && string(got.JWT.Secret) == "s", "%+v, %v", got.JWT, err)
}

func TestCanITellsWhatAServerSays(t *testing.T) {
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
		if c.out != "" {
			_, stdout, _ := run(t.Context(), "auth", "can-i", c.grant, "--server", server.URL, "-o", "json")
			assert.Containsf(t, stdout, fmt.Sprintf(`"allowed": %t`, c.problem == ""), "%s with %q", c.grant, c.token)
		}
		var out bytes.Buffer
		root := CommandLine()
		root.SetOut(&out)
		root.SetErr(io.Discard)
		root.SetArgs([]string{"auth", "can-i", c.grant, "--server", server.URL})
		root.SilenceErrors, root.SilenceUsage = true, true
		err := root.ExecuteContext(t.Context())
		if out.String() != c.out || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s with %q: %q, %v", c.grant, c.token, out.String(), err)
		}
	}
}
