package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
)

func TestMain(m *testing.M) { tables.Main(m) }

func run(args ...string) (code int, stdout, stderr string) {
	root := command()
	root.Use = "pawl"
	root.SetArgs(args)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	code = cli.Execute(root)
	return code, out.String(), errs.String()
}

func TestMistakesInTheCallExitWith2(t *testing.T) {
	for args, want := range map[string]string{
		"demo --address 0.0.0.0:80": "refusing to listen on 0.0.0.0:80",
		"demo now":                  `unknown command "now"`,
		"replay --events -1":        "--events is negative",
	} {
		code, stdout, stderr := run(append(strings.Fields(args), "--database", pgtest.URL(t))...)
		assert.Truef(t, code == 2 && strings.HasPrefix(stderr, "pawl: ") && strings.Contains(stderr, want),
			"%s: exit %d, %q, %q", args, code, stdout, stderr)
	}
}

// Every event has one effect, and a second replay of the log changes nothing.
func TestReplayCanBeReplayed(t *testing.T) {
	url := pgtest.URL(t)
	for _, want := range []string{"\n  0 replayed to both", "\n  0 done once"} {
		code, stdout, stderr := run("replay", "--database", url, "--data", "", "--events", "600")
		assert.Truef(t, code == 0 && strings.Contains(stdout, want) && strings.Contains(stdout, "0 differences"),
			"%s: exit %d, %s\n%s", want, code, stderr, stdout)
	}
	code, stdout, stderr := run("verify", "--database", url, "--tenant", "register")
	assert.Truef(t, code == 0 && strings.HasPrefix(stdout, "intact: "), "exit %d, %q, %q", code, stdout, stderr)
}

// Fines that are not of the log are found.
func TestReplayIntoATenantWithOtherFinesFails(t *testing.T) {
	url := pgtest.URL(t)
	if code, _, stderr := run("replay", "--database", url, "--data", "", "--events", "600"); code != 0 {
		t.Fatal(code, stderr)
	}
	code, stdout, stderr := run("replay", "--database", url, "--data", "", "--events", "300")
	// Where it takes long it tells how far it is before that.
	assert.Truef(t, code == 1 && strings.Contains("\n"+stderr, "\npawl: replay: what is durable differs"),
		"exit %d, %q\n%s", code, stderr, stdout)
}
