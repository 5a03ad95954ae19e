package flags

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

// asking is a command that asks a server, below one that has a database by default.
func asking(t *testing.T, database, args string) *cobra.Command {
	t.Helper()
	root := &cobra.Command{Use: "pawl"}
	root.PersistentFlags().String("database", database, "")
	c := &cobra.Command{Use: "list", RunE: func(*cobra.Command, []string) error { return nil }}
	var urls []string
	Servers(c, &urls, new(bool), "http://127.0.0.1:8080")
	root.AddCommand(c)
	root.SetArgs(append([]string{"list"}, strings.Fields(args)...))
	require.NoError(t, root.ExecuteContext(t.Context()))
	return c
}

func TestACommandAsksTheServerOrTheDatabase(t *testing.T) {
	for _, x := range []struct {
		url, token, database, args string
		byDatabase                 bool
	}{
		{"", "", "", "", false},
		{"", "", "d", "", true},
		{"u", "", "d", "", false},
		{"", "t", "d", "", false},
		{"u", "t", "", "--database=d", true},
		{"", "", "d", "--server http://u", false},
		{"", "", "", "--database=", true}, // a private one
	} {
		t.Setenv(EnvURL, x.url)
		t.Setenv(EnvToken, x.token)
		got, err := ByDatabase(asking(t, x.database, x.args))
		assert.Truef(t, err == nil && got == x.byDatabase, "%+v: %t, %v", x, got, err)
	}
	_, err := ByDatabase(asking(t, "", "--server http://u --database d"))
	assert.Error(t, err, "both are taken")
}

func TestVariablesThatMayBeTheReasonAreNamed(t *testing.T) {
	for _, x := range []struct {
		url, token, args string
		code             workflow.Code
		want             string
	}{
		{"", "", "", workflow.TimedOut, "PAWL_URL and --server are not set"},
		{"http://u", "", "", workflow.TimedOut, ""},
		{"", "", "--server http://u", workflow.TimedOut, ""},
		{"", "", "", workflow.Unauthorized, "set the credential in PAWL_TOKEN"},
		{"", "t", "", workflow.Unauthorized, "the one in PAWL_TOKEN"},
		{"", "t", "", workflow.Forbidden, "auth can-i"},
		{"", "", "", workflow.Forbidden, ""},
		{"", "t", "", workflow.GuardRefused, ""},
	} {
		t.Setenv(EnvURL, x.url)
		t.Setenv(EnvToken, x.token)
		err := AnsweredByServer(asking(t, "", x.args), workflow.Errorf(x.code, "no"))
		_, hint, _ := strings.Cut(err.Error(), "; ")
		assert.Truef(t, strings.Contains(hint, x.want) && (x.want != "" || hint == ""), "%+v: %v", x, err)
	}
}
