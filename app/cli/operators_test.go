package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

var keyText = regexp.MustCompile(`^pawl_([0-9A-Za-z]{12})_[0-9A-Za-z]{36}\n$`)

// The first key is created on the database, and running nodes accept it.
func TestKeys_OnTheDatabase(t *testing.T) {
	var url string
	s := serving(t, func(c *service.Config) { c.Auth.Keys, url = true, c.Database })
	keys := func(args string) (code int, stdout, stderr string) {
		return run(t.Context(), append([]string{"keys", "--database", url}, strings.Fields(args)...)...)
	}
	code, text, stderr := keys("create billing --tenant acme --role clerk --grant read --grant submit:order/pay --expires 24h --by ann")
	found := keyText.FindStringSubmatch(text)
	require.Truef(t, code == 0 && found != nil && !strings.Contains(stderr, strings.TrimSpace(text)),
		"exit %d, %q, %s", code, text, stderr)
	id := found[1]
	canI := func(text, grant string) (int, string) {
		t.Helper()
		t.Setenv(flags.EnvToken, strings.TrimSpace(text))
		code, stdout, stderr := run(t.Context(), "auth", "can-i", grant, "--server", s.URL())
		return code, stdout + stderr
	}
	_, told := canI(text, "submit:order/pay")
	assert.Contains(t, told, "billing of acme (key "+id+")")
	_, stdout, _ := keys("list")
	assert.Regexp(t, id+"  acme .* read submit:order/pay  clerk  until ", stdout)
	_, stdout, _ = keys("list -o json --tenant acme")
	assert.Contains(t, stdout, `"created_by": "ann (command line)"`)
	_, stdout, _ = keys("list -o json --tenant other")
	assert.Equal(t, "{\n  \"keys\": []\n}\n", stdout)

	code, rotated, stderr := keys("rotate -o json " + id)
	var made api.APIKeyText
	require.Truef(t, code == 0 && json.Unmarshal([]byte(rotated), &made) == nil && made.ID == id && keyText.MatchString(made.Key+"\n"),
		"exit %d, %s, %s", code, rotated, stderr)
	await.Eventually(t, "the new text is taken", func() bool { code, _ := canI(made.Key, "read"); return code == 0 })
	code, told = canI(text, "read")
	assert.Equal(t, 0, code, told)
	_, stdout, _ = keys("revoke " + id + " --by bob")
	assert.Equal(t, `key `+id+`, "billing" of acme, is revoked`+"\n", stdout)
	await.Eventually(t, "it is refused", func() bool { code, _ := canI(made.Key, "read"); return code == flags.ExitRefused })

	for args, want := range map[string]struct {
		code int
		why  string
	}{
		"create":                         {2, "NAME is missing"},
		"create k":                       {2, "a key has 1 to 64 grants"},
		"create k --grant read --grant":  {2, "flag needs an argument"},
		"create k --grant read --by=":    {2, "--by is empty"},
		"create k --grant read --actor=": {2, "--actor is empty"},
		"create k --grant read --role=":  {2, "1 to 255 bytes"},
		"create k\xff --grant read":      {2, "is not valid UTF-8"},
		"create " + strings.Repeat("k", 101) + " --grant read": {2, "longer than 100 bytes"},
		"create k --grant write":                               {2, "begin with a right"},
		"create k --grant read --expires -1h":                  {2, "must end in the future"},
		"create k --grant read --actor pawl:x":                 {2, "Pawl's own"},
		"list --limit 0":                                       {2, "--limit"},
		"rotate x":                                             {2, "12 letters and digits"},
		"revoke " + text:                                       {2, "12 letters and digits"},
		"revoke --by= " + id:                                   {2, "--by is empty"},
		"rotate " + id:                                         {1, "is revoked"},
		"rotate " + id + " --lost --overlap 1h":                {2, "exclude each other"},
		"rotate " + id + " --overlap 99999h":                   {2, "not 0 to 2160h0m0s"},
		"revoke 000000000000":                                  {1, "there is no such key"},
		"revok " + id:                                          {2, "revoke"},
		"list --schema elsewhere":                              {1, "no tables of Pawl"},
	} {
		code, stdout, stderr := keys(args)
		assert.Equal(t, want.code, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, want.why, args)
		assert.NotContains(t, stderr, strings.TrimSpace(text), args)
	}
}

func TestTicketKeysAreRotatedAndDropped(t *testing.T) {
	u := &user{t: t, database: pgtest.URL(t)}
	u.gets("migrate up")
	for i, c := range []struct {
		args, out string
		keys      int
	}{
		{"", "tickets are signed with a new key\n", 1},
		{"", "tickets are signed with a new key\n", 2},
		{" --drop", "tickets are signed with a new key, and all others are removed\n", 1},
	} {
		assert.Equal(t, c.out, u.gets("tickets rotate"+c.args), i)
		assert.Equal(t, c.keys, u.count("SELECT count(*) FROM pawl.ticket_key"), i)
	}
}

func TestOpsKeysOfANode_SuppressionRate(t *testing.T) {
	s := serving(t)
	for range 4 {
		code, body := place(t, s.URL())
		require.Equal(t, 201, code, body)
	}
	code, stdout, stderr := run(t.Context(), "ops", "keys", "--node", s.URL()+"/")
	assert.Equal(t, 0, code, stderr)
	assert.Contains(t, stdout, "\nscope        tenant   attempts  new  replayed  active  mismatched  expired  suppressed\n"+
		"order:place  default         4    1         3       0           0        0      75.0 %\n")
	code, _, stderr = run(t.Context(), "ops", "keys", "--node", s.URL()+"/elsewhere")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "shop: the node answered 404 Not Found: there is nothing at this address")
}

func TestCommandsSendTheirCredential(t *testing.T) {
	u := newUser(t, func(c *service.Config) { c.Auth.Keys = true })
	key := func(args string) string {
		code, text, stderr := run(t.Context(), append([]string{"keys", "create", "--database", u.database}, strings.Fields(args)...)...)
		require.Equal(t, 0, code, stderr)
		return strings.TrimSpace(text)
	}
	all, operator, reader := key("all --grant operate:all"), key("one --tenant acme --grant operate"), key("reads --tenant acme --grant read")
	for _, c := range []struct {
		credential, args string
		code             int
		want             string
	}{
		{"", "ops keys", 1, "401 Unauthorized: a credential is required"},
		{all, "ops keys", 0, ""},
		{all, "ops begin order 1", 0, ""},
		{all, "ops begin order 7", 1, "version 7"},
		{all, "ops begin order 1 --by bob", 2, "--by"},
		{operator, "ops keys", 1, "403 Forbidden"},
		{operator, "ops keys --tenant acme", 0, ""},
		{operator, "ops keys --tenant other", 1, `PAWL_TOKEN is one of the tenant "acme", not of "other"`},
		{reader, "ops keys --tenant acme", 1, "403 Forbidden"},
		{"", "list", 5, "; set the credential in PAWL_TOKEN"},
		{"pawl_nobody", "list", 5, "; the credential is the one in PAWL_TOKEN"},
		{reader, "list", 0, ""},
		{reader, "submit order place", 5, `; "auth can-i GRANT" shows the grants of the credential in PAWL_TOKEN`},
		{reader, "list --tenant other", 5, "invalid_request"},
	} {
		t.Setenv(flags.EnvToken, c.credential)
		server := " --server "
		if strings.HasPrefix(c.args, "ops") {
			server = " --node "
		}
		code, _, stderr := run(t.Context(), strings.Fields(c.args+server+u.url)...)
		assert.Equal(t, c.code, code, c.args, stderr)
		assert.Contains(t, stderr, c.want, c.args)
	}
}

// A credential is sent to other machines only with TLS, or with --plain-http.
func TestCredentialIsNotSentOverPlainHTTP(t *testing.T) {
	for _, args := range []string{"ops keys --node", "ops versions --node", "auth can-i read --server", "get order#A-1 --server",
		"submit order place {} --server"} {
		for _, server := range []string{"localhost:8080", "ftp://localhost", "http://"} {
			code, _, stderr := run(t.Context(), strings.Fields(args+" "+server)...)
			assert.Equal(t, 2, code, args, server)
			assert.Contains(t, stderr, "is not the URL of a server", args, server)
		}
		for _, c := range []struct {
			credential, more string
			refused          bool
		}{{"secret", "", true}, {"secret", " --plain-http", false}, {"", "", false}} {
			t.Setenv(flags.EnvToken, c.credential)
			code, _, stderr := run(t.Context(), strings.Fields(args+" http://pawl.invalid"+c.more)...)
			assert.Equal(t, c.refused, code == 2, args, stderr)
			assert.Equal(t, c.refused, strings.Contains(stderr, "without TLS"), stderr)
			assert.NotContains(t, stderr, "secret", args)
		}
	}
}
