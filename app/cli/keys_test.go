package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
)

var keyText = regexp.MustCompile(`^pawl_([0-9A-Za-z]{12})_[0-9A-Za-z]{36}\n$`)

// The first key is made on the database, and nodes that serve take it.
func TestKeysAreMadeAndTakenBackOnTheDatabase(t *testing.T) {
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
	if code, told := canI(text, "submit:order/pay"); code != 0 || !strings.Contains(told, "billing of acme (key "+id+")") {
		t.Errorf("exit %d, %s", code, told)
	}
	if code, told := canI(text, "submit:order/cancel"); code != 1 || !strings.Contains(told, "narrower") {
		t.Errorf("exit %d, %s", code, told)
	}

	if code, stdout, _ := keys("list"); code != 0 || !strings.Contains(stdout, id+"  acme") ||
		!strings.Contains(stdout, "read submit:order/pay  clerk  until ") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	var list api.APIKeyPage
	if code, stdout, _ := keys("list -o json --tenant acme"); code != 0 || json.Unmarshal([]byte(stdout), &list) != nil ||
		len(list.Keys) != 1 ||
		list.Keys[0].CreatedBy != "ann (command line)" || list.Keys[0].ExpiresAt.IsZero() {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if code, stdout, stderr := keys("list -o json --tenant other"); code != 0 || stdout != "{\n  \"keys\": []\n}\n" {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}

	code, rotated, stderr := keys("rotate -o json " + id)
	var made api.APIKeyText
	require.Truef(t, code == 0 && json.Unmarshal([]byte(rotated), &made) == nil && made.ID == id && keyText.MatchString(made.Key+"\n"),
		"exit %d, %s, %s", code, rotated, stderr)
	await.Eventually(t, "the new text is taken", func() bool { code, _ := canI(made.Key, "read"); return code == 0 })
	if code, told := canI(text, "read"); code != 0 {
		t.Errorf("the former text is not taken: %s", told)
	}
	if code, stdout, stderr := keys("revoke " + id + " --by bob"); code != 0 || stdout != `key `+id+`, "billing" of acme, is revoked`+"\n" {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
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
		"rotate " + id + " --lost --overlap 1h":                {2, "--lost ends it"},
		"rotate " + id + " --overlap 99999h":                   {2, "not 0 to 2160h0m0s"},
		"revoke 000000000000":                                  {1, "there is no such key"},
		"revok " + id:                                          {2, "revoke"},
		"list --schema elsewhere":                              {1, "no tables of Pawl"},
	} {
		if code, stdout, stderr := keys(args); code != want.code || stdout != "" || !strings.Contains(stderr, want.why) {
			t.Errorf("%s: exit %d, %s%s", args, code, stdout, stderr)
		} else if strings.Contains(stderr, strings.TrimSpace(text)) {
			t.Errorf("%s shows the text of a key: %s", args, stderr)
		}
	}
}
