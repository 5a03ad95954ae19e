package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/internal/kernel/build"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

func TestUsageErrors(t *testing.T) {
	for _, tt := range []struct{ args, command, want string }{
		{"sevre", "", `there is no command "sevre"; did you mean serve?`},
		{"sumbit order place", "", `there is no command "sumbit"; did you mean submit?`},
		{"ops sutck", "ops", `there is no command "sutck"; did you mean stuck?`},
		{"fly away", "", `there is no command "fly"`},
		{"serve now", "serve", `unknown command "now" for "shop serve"`},
		{"serve --port 1", "serve", `unknown flag: --port`},
		{"serve --address 0.0.0.0:80", "serve",
			`refusing to listen on 0.0.0.0:80: callers are not authenticated, so only this machine may connect; say whose ` +
				`credentials are taken (--auth), or listen on a loopback address such as 127.0.0.1:8080`},
		{"serve --schema Pawl", "serve", `schema name "Pawl" is not 1 to 63 characters of a-z, 0-9 and _, starting with a letter`},
		{"ops sinks forget crm --schema=", "ops sinks forget", `--schema is empty`},
		{"verify --tenant=", "verify", `--tenant is empty`},
		{"serve --credential-rate -1", "serve", `--credential-rate is negative`},
		{"serve --max-connections -1", "serve", `Config.Network.Connections is negative`},
		{"serve --tls-cert c", "serve", `TLS needs both a certificate and its key (--tls-cert and --tls-key)`},
		{"serve --proxy 10.0.0.1", "serve", `--proxy 10.0.0.1 is not a network such as 10.0.0.0/8`},
		{"serve --origin *", "serve", `"*" is not an origin such as https://shop.example.com, in small letters and without a path`},
		{"serve --rate -1", "serve", `--rate is negative`},
		{"serve --sink main", "serve", `a --sink is not NAME=URL`},
		{"serve --sink Main=file:-", "serve",
			`--sink: sink name "Main" is not 1 to 64 characters of a-z, 0-9, '-', '_' and '.', starting with a letter or a digit`},
		{"serve --sink a=file:- --sink a=file:-", "serve", `--sink a is given twice`},
		{"serve --sink a=https://secret@/%zz", "serve", `--sink a: the URL cannot be parsed`},
		{"serve --sink a=kafka://secret", "serve", `--sink a: the URL is not one of https, http, nats, tls or file`},
		{"serve --sink a.b-c=https://example.com/secret", "serve", `--sink a.b-c: PAWL_SINK_A_B_C_SECRET: the secret is missing`},
		{"serve --sink a=nats://secret@h/?stream=S&queue=x", "serve", `--sink a: the URL's query takes stream and subject, each once`},
		{"serve --sink a=nats://secret@h/path", "serve", `--sink a: the URL is not nats://host:port/?stream=…&subject=…`},
		{"serve --sink a=file:events", "serve", `--sink a: the file's path is not absolute`},
		{"serve --sink a=file://host/events", "serve", `--sink a: a file's URL is file:///path, or file:- for the standard output`},
		{"serve --sink a=file:- --sink-from-now b", "serve", `--sink-from-now b names no --sink`},
		{"serve --source /shop/", "serve",
			`--source: the source "/shop/" is not a URI reference of 1 to 64 visible ASCII characters, without ", %, ?, # and a ` +
				`slash at its end`},
		{"serve --sink-private home", "serve", `--sink-private home is not a network such as 10.0.0.0/8`},
		{"serve --workers -1", "serve", `--workers is negative`},
		{"serve --keep-events 23h", "serve", `--keep-events 23h0m0s is less than a day: a reader that is offline overnight would miss events`},
		{"serve --lease 500ms", "serve", `--lease 500ms is less than a second: a node that is only slow would lose its work`},
		{"serve --inbox payments", "serve", `--inbox "payments": PAWL_INBOX_PAYMENTS_SECRET: the secret is missing`},
		{"migrate --schema 1", "migrate", `schema name "1" is not 1 to 63 characters of a-z, 0-9 and _, starting with a letter`},
		{"verify --instance x", "verify", `--instance is not a UUID: invalid UUID length: 1`},
		{"auth can-i read --database x", "auth can-i",
			`--database: only a server checks a credential; access to the database includes all rights`},
		{"ops fly", "ops", `there is no command "fly"`},
		{"ops stuck --limit 0", "ops stuck", `--limit 0 is not 1 to 1000`},
		{"ops keys --node 127.0.0.1:1", "ops keys", `--node is not the URL of a server, such as http://127.0.0.1:8080`},
		{"ops sinks skip crm", "ops sinks skip",
			`select dead letters: with --tenant, --workflow, --type, --business-key, --instance or --position, or --all`},
		{"ops sinks dead crm --position 3", "ops sinks dead", `--position needs --tenant`},
		{"ops sinks move crm", "ops sinks move", `--to is missing`},
		{"ops sinks dead", "ops sinks dead", `SINK is missing`},
		{"ops inbox retry", "ops inbox retry", `CONSUMER is missing`},
		{"ops resolve order:1 a b", "ops resolve", `"b" is one argument too many`},
		{"diagram", "diagram", `WORKFLOW is missing`},
		{"diagram ordre", "diagram", `unknown workflow "ordre"; did you mean order?`},
		{"diagram order --format png", "diagram", `--format png is not mermaid, dot or svg`},
	} {
		code, stdout, stderr := run(t.Context(), strings.Fields(tt.args)...)
		assert.Equal(t, flags.ExitUsage, code, tt.args)
		assert.Empty(t, stdout, tt.args)
		path := strings.TrimSpace("shop " + tt.command)
		assert.Equal(t, fmt.Sprintf("shop: %s (see \"%s --help\")\n", tt.want, path), stderr, tt.args)
	}
}

func TestFailuresExitWith1(t *testing.T) {
	empty := pgtest.EmptyURL(t)
	for _, tt := range []struct{ args, want string }{
		{"serve --address 127.0.0.1:0 --database postgres://127.0.0.1:1/x", "shop: connect to the database: "},
		{"migrate --database postgres://127.0.0.1:1/x", "shop: connect to the database: "},
		{"verify --database " + empty, "shop: the database is older than this program: migrate it (schema pawl has no tables of Pawl; are " +
			"--database and --schema the right ones?)"},
	} {
		code, _, stderr := run(t.Context(), strings.Fields(tt.args)...)
		assert.Equal(t, 1, code, tt.args)
		assert.True(t, strings.HasPrefix(stderr, tt.want), stderr)
		assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
}

// A broken definition is reported before a database is needed.
func TestServe_BrokenWorkflow(t *testing.T) {
	broken := workflow.Define("broken", 1, workflow.Start("begin", "here",
		func(*workflow.Call, *struct{}, workflow.None) error { return nil }))
	code, _, stderr := runOver(t.Context(), []workflow.Source{broken}, "serve", "--address", "127.0.0.1:0", "--database",
		"postgres://127.0.0.1:1/x")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "broken")
	assert.NotContains(t, stderr, "connect")
}

func TestHelpDoesNotShowThePassword(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://me:sesame@127.0.0.1/x")
	for args, want := range map[string]string{"serve --help": "--database", "": "migrate"} {
		code, stdout, stderr := run(t.Context(), strings.Fields(args)...)
		assert.Equal(t, 0, code, args)
		assert.Contains(t, stdout, want)
		assert.NotContains(t, stdout+stderr, "sesame")
	}
}

func TestDiagram(t *testing.T) {
	for format, begin := range map[string]string{"mermaid": "stateDiagram-v2", "dot": "digraph", "svg": "<svg"} {
		code, stdout, _ := run(t.Context(), "diagram", "order", "--format", format)
		assert.Equal(t, 0, code, format)
		assert.Regexp(t, `(?s)^`+begin+`.*refunded`, stdout)
	}
	define := func(version int, state workflow.State) workflow.Source {
		return workflow.Define("w", version,
			workflow.Start("begin", state, func(*workflow.Call, *struct{}, workflow.None) error { return nil })).Final(state)
	}
	_, stdout, _ := runOver(t.Context(), []workflow.Source{define(1, "one"), define(3, "three"), define(2, "two")}, "diagram", "w")
	assert.Contains(t, stdout, "three")
}

func TestVersionNamesProgramAndPawl(t *testing.T) {
	for _, tt := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, "pawl unknown, go"},
		{&debug.BuildInfo{Main: debug.Module{Path: build.Module, Version: "v1.2.3"}}, "pawl v1.2.3, go"},
		{&debug.BuildInfo{
			Main:     debug.Module{Path: "example.org/shop", Version: "v7.0.0"},
			Deps:     []*debug.Module{{Path: "example.org/other", Version: "v9.0.0"}, {Path: build.Module, Version: "v1.2.3"}},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}},
		}, "example.org/shop v7.0.0, pawl v1.2.3, commit abc, go"},
		{&debug.BuildInfo{
			Main: debug.Module{Path: "example.org/shop", Version: "(devel)"},
			Deps: []*debug.Module{{Path: build.Module, Replace: &debug.Module{Path: "../pawl", Version: "(devel)"}}},
		}, `example.org/shop \(devel\), pawl \(devel\), go`},
	} {
		assert.Regexp(t, "^"+tt.want, versionOf(tt.info).String())
	}
	_, stdout, _ := run(t.Context(), "version")
	assert.Contains(t, stdout, "pawl")
	_, stdout, _ = run(t.Context(), "version", "-o", "json")
	assert.Contains(t, stdout, `"go": "`+runtime.Version()+`"`)
}

func TestShellCompletion(t *testing.T) {
	for args, want := range map[string]string{"completion bash": "__start_shop", "completion zsh": "#compdef shop",
		"completion fish": "complete -c shop",
		"__complete his":  "history\t", "__complete list -o ": "table\njson\n:4", "__complete ops stuck -o ": "table\njson\n:4",
		"__complete tail --aft": "--after\t"} {
		list := strings.Fields(args)
		if strings.HasSuffix(args, " ") {
			list = append(list, "")
		}
		code, stdout, _ := run(t.Context(), list...)
		assert.Equal(t, 0, code, args)
		assert.Contains(t, stdout, want, args)
	}
}

func TestExitCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, help, _ := run(t.Context(), "--help")
	for line := range strings.Lines(flags.ExitCodes()) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		assert.Contains(t, string(page), "| "+code+" | "+meaning+" |\n")
		assert.Contains(t, help, line)
	}
}

// Commands on an existing database do not start a private one.
func TestCommandsWithoutDatabase(t *testing.T) {
	home := t.TempDir()
	t.Setenv("DATABASE_URL", "")
	t.Setenv(localpg.EnvHome, home)
	for _, args := range []string{"ops counts", "ops stuck", "keys list", "verify", "doctor", "migrate status"} {
		code, _, stderr := run(t.Context(), strings.Fields(args)...)
		assert.Equal(t, 2, code, args)
		assert.Contains(t, stderr, "no database is named, and no private one exists: set DATABASE_URL or --database", args)
	}
	files, err := filepath.Glob(filepath.Join(home, "*", "data"))
	assert.NoError(t, err)
	assert.Empty(t, files)
}
