package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestOpsWorksOnTheDatabaseOfTheFlags(t *testing.T) {
	url := pgtest.EmptyURL(t)
	code, _, stderr := run(t.Context(), "migrate", "--database", url, "--schema", "shop")
	require.Equal(t, 0, code, stderr)
	code, stdout, stderr := run(t.Context(), "ops", "stuck", "-o", "json", "--database", url, "--schema", "shop")
	assert.Truef(t, code == 0 && stdout == "{\n  \"commands\": []\n}\n" && stderr == "", "exit %d, %s%s", code, stdout, stderr)
	code, _, stderr = run(t.Context(), "ops", "stuck", "--database", url)
	assert.Truef(t, code == 1 && strings.Contains(stderr, "schema pawl has no tables of Pawl"), "exit %d, %s", code, stderr)
}

// Another binary than the nodes' may be the one at hand.
func TestOpsThatTakesPartWritesNoHorizonsDown(t *testing.T) {
	pool := pgtest.EmptyPool(t)
	url := pool.Config().ConnString()
	code, _, stderr := run(t.Context(), "migrate", "--database", url)
	require.Equal(t, 0, code, stderr)
	code, _, stderr = run(t.Context(), "ops", "abandon", "scope", "key", "--database", url)
	assert.Truef(t, code == 1 && strings.Contains(stderr, "command_not_found"), "exit %d, %s", code, stderr)
	var definitions, horizons int
	require.NoError(t, pool.QueryRow(t.Context(),
		"SELECT (SELECT count(*) FROM pawl.definition), (SELECT count(*) FROM pawl.horizon)").Scan(&definitions, &horizons))
	assert.Truef(t, definitions != 0 && horizons == 0, "it wrote %d definitions and %d horizons", definitions, horizons)
}

// A node knows besides what it has answered.
func TestOpsKeysOfANodeShowsTheSuppressionRate(t *testing.T) {
	s := serving(t)
	for range 4 {
		if code, body := place(t, s.URL()); code != 201 {
			t.Fatal(code, body)
		}
	}
	code, stdout, stderr := run(t.Context(), "ops", "keys", "--node", s.URL()+"/")
	want := "\nscope        tenant   attempts  new  replayed  active  mismatched  expired  suppressed\n" +
		"order:place  default         4    1         3       0           0        0      75.0 %\n"
	assert.Truef(t, code == 0 && strings.HasSuffix(stdout, want), "exit %d, %s\n%s", code, stderr, stdout)
	code, _, stderr = run(t.Context(), "ops", "keys", "--node", s.URL()+"/elsewhere")
	assert.Truef(t, code == 1 && strings.HasPrefix(stderr, "shop: the node answered 404 Not Found: there is nothing at this address"),
		"exit %d, %s", code, stderr)
}

// A node that asks who calls is shown the credential.
func TestOpsKeysOfANodeShowsItsCredential(t *testing.T) {
	var url string
	s := serving(t, func(c *service.Config) { c.Auth.Keys, url = true, c.Database })
	key := func(args string) string {
		code, text, stderr := run(t.Context(), append([]string{"keys", "create", "--database", url}, strings.Fields(args)...)...)
		require.Equal(t, 0, code, stderr)
		return strings.TrimSpace(text)
	}
	ofAll, ofOne, reads := key("all --grant operate:all"), key("one --tenant acme --grant operate"), key("reads --tenant acme --grant read")
	for _, c := range []struct {
		credential, args string
		code             int
		problem          string
	}{
		{"", "", 1, "401 Unauthorized: a credential is required"},
		{ofAll, "", 0, ""},
		{ofOne, "", 1, "403 Forbidden"},
		{ofOne, "--tenant acme", 0, ""},
		{ofOne, "--tenant other", 1, `PAWL_TOKEN is one of the tenant "acme", not of "other"`},
		{reads, "--tenant acme", 1, "403 Forbidden"},
	} {
		t.Setenv(flags.EnvToken, c.credential)
		code, _, stderr := run(t.Context(), append([]string{"ops", "keys", "--node", s.URL()}, strings.Fields(c.args)...)...)
		assert.Truef(t, code == c.code && strings.Contains(stderr, c.problem), "%s: exit %d, %s", c.args, code, stderr)
	}
	for _, server := range []string{"", "localhost:8080", "ftp://localhost", "http://"} {
		for _, args := range [][]string{{"ops", "keys", "--node", server}, {"auth", "can-i", "read", "--server", server}} {
			code, _, stderr := run(t.Context(), args...)
			if code != 2 || !strings.Contains(stderr, "is not the URL of a server") && !strings.Contains(stderr, "--node is empty") {
				t.Errorf("%q: exit %d, %s", args, code, stderr)
			}
		}
	}
}

// A credential is not sent without TLS to another machine unless the caller says so.
func TestCredentialIsNotSentOverPlainHTTP(t *testing.T) {
	for _, args := range [][]string{{"ops", "keys", "--node"}, {"ops", "versions", "--node"}, {"auth", "can-i", "read", "--server"},
		{"get", "order#A-1", "--server"}, {"submit", "order", "place", "{}", "--server"}} {
		args = append(args, "http://pawl.invalid")
		t.Setenv(flags.EnvToken, "secret")
		if code, _, stderr := run(t.Context(), args...); code != 2 || !strings.Contains(stderr, "without TLS") || strings.Contains(stderr, "secret") {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
	}
	for _, args := range [][]string{{"ops", "keys", "--node", "http://pawl.invalid"}, {"auth", "can-i", "read", "--server", "http://pawl.invalid"}} {
		t.Setenv(flags.EnvToken, "secret")
		if code, _, stderr := run(t.Context(), append(args, "--plain-http")...); code == 0 || code == 2 || strings.Contains(stderr, "without TLS") {
			t.Errorf("%q --plain-http: exit %d, %s", args, code, stderr)
		}
		t.Setenv(flags.EnvToken, "")
		if code, _, stderr := run(t.Context(), args...); code == 0 || code == 2 || strings.Contains(stderr, "without TLS") {
			t.Errorf("%q without a credential: exit %d, %s", args, code, stderr)
		}
	}
}

// A node lists versions, and is told which one begins, with the same words as the database.
func TestVersionsAreSeenAndBegunAtANode(t *testing.T) {
	var url string
	s := serving(t, func(c *service.Config) { c.Auth.Keys, url = true, c.Database })
	code, key, stderr := run(t.Context(), "keys", "create", "ann", "--grant", "operate:all", "--database", url)
	require.Equal(t, 0, code, stderr)
	at := func(code int, args ...string) string {
		t.Helper()
		got, stdout, stderr := run(t.Context(), append(append([]string{"ops"}, args...), "--node", s.URL())...)
		assert.Equalf(t, code, got, "%q: exit, %s", args, stderr)
		return stdout + stderr
	}
	assert.Contains(t, at(1, "versions"), "401 Unauthorized")
	t.Setenv(flags.EnvToken, strings.TrimSpace(key))
	if got, want := at(0, "begin", "order", "1"), "order: new instances begin with version 1\n"; got != want {
		t.Error(got)
	}
	assert.Contains(t, at(0, "versions"), "new ones")
	assert.Contains(t, at(1, "begin", "order", "7"), "version 7")
	assert.Contains(t, at(0, "begin", "order", "newest", "-o", "json"), `"version": 0`)
	at(2, "begin", "order", "1", "--by", "bob") // the credential says who it is
}
