package cli

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/kernel/build"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// run executes the command line over the order workflow.
func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return runOver(ctx, []workflow.Source{order.Workflow(provider.New())}, args...)
}

func runOver(ctx context.Context, workflows []workflow.Source, args ...string) (code int, stdout, stderr string) {
	root := CommandLine(workflows...)
	root.Use = "shop"
	root.SetArgs(args)
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	code = execute(ctx, root)
	return code, out.String(), errs.String()
}

func TestMistakesInTheCallExitWith2(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"sevre", `shop: there is no command "sevre"; did you mean serve? (see "shop --help")`},
		{"sumbit order place", `shop: there is no command "sumbit"; did you mean submit? (see "shop --help")`},
		{"ops sutck", `shop: there is no command "sutck"; did you mean stuck? (see "shop ops --help")`},
		{"fly away", `shop: there is no command "fly" (see "shop --help")`},
		{"serve now", `shop: unknown command "now" for "shop serve" (see "shop serve --help")`},
		{"serve --port 1", `shop: unknown flag: --port (see "shop serve --help")`},
		{"serve --address 0.0.0.0:80",
			`shop: refusing to listen on 0.0.0.0:80: callers are not authenticated, so only this machine may connect; ` +
				`say whose credentials are taken (--auth), or listen on a loopback address such as 127.0.0.1:8080 (see "shop serve --help")`},
		{"serve --schema Pawl",
			`shop: schema name "Pawl" is not 1 to 63 characters of a-z, 0-9 and _, starting with a letter (see "shop serve --help")`},
		{"ops sinks forget crm --schema=", `shop: --schema is empty (see "shop ops sinks forget --help")`},
		{"verify --tenant=", `shop: --tenant is empty (see "shop verify --help")`},
		{"serve --credential-rate -1", `shop: --credential-rate is negative (see "shop serve --help")`},
		{"serve --max-connections -1", `shop: Config.Network.Connections is negative (see "shop serve --help")`},
		{"serve --tls-cert c", `shop: TLS needs both a certificate and its key (--tls-cert and --tls-key) (see "shop serve --help")`},
		{"serve --proxy 10.0.0.1", `shop: --proxy 10.0.0.1 is not a network such as 10.0.0.0/8 (see "shop serve --help")`},
		{"serve --origin *", `shop: "*" is not an origin such as https://shop.example.com, in small letters and without a path (see "shop ` +
			`serve --help")`},
		{"serve --rate -1", `shop: --rate is negative (see "shop serve --help")`},
		{"serve --sink main", `shop: a --sink is not NAME=URL (see "shop serve --help")`},
		{"serve --sink Main=file:-", `shop: --sink: sink name "Main" is not 1 to 64 characters of a-z, 0-9, '-', '_' and '.', starting with a ` +
			`letter or a digit (see "shop serve --help")`},
		{"serve --sink a=file:- --sink a=file:-", `shop: --sink a is given twice (see "shop serve --help")`},
		{"serve --sink a=https://secret@/%zz", `shop: --sink a: the URL cannot be parsed (see "shop serve --help")`},
		{"serve --sink a=kafka://secret", `shop: --sink a: the URL is not one of https, http, nats, tls or file (see "shop serve --help")`},
		{"serve --sink a.b-c=https://example.com/secret", `shop: --sink a.b-c: PAWL_SINK_A_B_C_SECRET: the secret is missing (see "shop serve ` +
			`--help")`},
		{"serve --sink a=nats://secret@h/?stream=S&queue=x", `shop: --sink a: the URL's query takes stream and subject, each once (see "shop ` +
			`serve --help")`},
		{"serve --sink a=nats://secret@h/path", `shop: --sink a: the URL is not nats://host:port/?stream=…&subject=… (see "shop serve --help")`},
		{"serve --sink a=file:events", `shop: --sink a: the file's path is not absolute (see "shop serve --help")`},
		{"serve --sink a=file://host/events", `shop: --sink a: a file's URL is file:///path, or file:- for the standard output (see "shop ` +
			`serve --help")`},
		{"serve --sink a=file:- --sink-from-now b", `shop: --sink-from-now b names no --sink (see "shop serve --help")`},
		{"serve --source /shop/", `shop: --source: the source "/shop/" is not a URI reference of 1 to 64 visible ASCII characters, without ", ` +
			`%, ?, # and a slash at its end (see "shop serve --help")`},
		{"serve --sink-private home", `shop: --sink-private home is not a network such as 10.0.0.0/8 (see "shop serve --help")`},
		{"serve --workers -1", `shop: --workers is negative (see "shop serve --help")`},
		{"serve --keep-events 23h", `shop: --keep-events 23h0m0s is less than a day: a reader that is away overnight would miss events (see "shop ` +
			`serve --help")`},
		{"serve --lease 500ms", `shop: --lease 500ms is less than a second: a node that is only slow would lose its work (see "shop serve ` +
			`--help")`},
		{"serve --inbox payments", `shop: --inbox "payments": PAWL_INBOX_PAYMENTS_SECRET: the secret is missing (see "shop serve --help")`},
		{"migrate --schema 1", `shop: schema name "1" is not 1 to 63 characters of a-z, 0-9 and _, starting with a letter (see "shop migrate --help")`},
		{"verify --instance x", `shop: --instance is not a UUID: invalid UUID length: 1 (see "shop verify --help")`},
		{"auth can-i read --database x", `shop: --database: only a server checks a credential; access to the database includes all ` +
			`rights (see "shop auth can-i --help")`},
		{"ops fly", `shop: there is no command "fly" (see "shop ops --help")`},
		{"ops stuck --limit 0", `shop: --limit 0 is not 1 to 1000 (see "shop ops stuck --help")`},
		{"ops keys --node 127.0.0.1:1", `shop: --node is not the URL of a server, such as http://127.0.0.1:8080 (see "shop ops keys --help")`},
		{"ops sinks skip crm", `shop: select dead letters: with --tenant, --workflow, --type, --business-key, --instance or --position, or --all (see ` +
			`"shop ops sinks skip --help")`},
		{"ops sinks dead crm --position 3", `shop: --position needs --tenant (see "shop ops sinks dead --help")`},
		{"ops sinks move crm", `shop: --to is missing (see "shop ops sinks move --help")`},
		{"ops sinks dead", `shop: SINK is missing (see "shop ops sinks dead --help")`},
		{"ops inbox retry", `shop: CONSUMER is missing (see "shop ops inbox retry --help")`},
		{"ops resolve order:1 a b", `shop: "b" is one argument too many (see "shop ops resolve --help")`},
		{"diagram", `shop: WORKFLOW is missing (see "shop diagram --help")`},
		{"diagram ordre", `shop: unknown workflow "ordre"; did you mean order? (see "shop diagram --help")`},
		{"diagram order --format png", `shop: --format png is not mermaid, dot or svg (see "shop diagram --help")`},
	} {
		code, stdout, stderr := run(t.Context(), strings.Fields(tt.args)...)
		assert.Truef(t, code == 2 && stdout == "" && stderr == tt.want+"\n",
			"%s: exit %d, stdout %q\n got %s\nwant %s", tt.args, code, stdout, stderr, tt.want)
	}
}

func TestFailuresExitWith1AndOneLine(t *testing.T) {
	empty := pgtest.EmptyURL(t)
	for _, tt := range []struct{ args, want string }{
		{"serve --address 127.0.0.1:0 --database postgres://127.0.0.1:1/x", "shop: connect to the database: "},
		{"migrate --database postgres://127.0.0.1:1/x", "shop: connect to the database: "},
		{"verify --database " + empty, "shop: the database is older than this program: migrate it (schema pawl has no tables of Pawl; are " +
			"--database and --schema the right ones?)"},
	} {
		code, _, stderr := run(t.Context(), strings.Fields(tt.args)...)
		assert.Truef(t, code == 1 && strings.HasPrefix(stderr, tt.want) && strings.Count(strings.TrimSuffix(stderr, "\n"), "\n") == 0,
			"%s: exit %d, %q, want %q", tt.args, code, stderr, tt.want)
	}
}

// A broken definition is reported before a database is needed.
func TestMistakesOfAWorkflowAreReported(t *testing.T) {
	broken := workflow.Define("broken", 1, workflow.Start("begin", "here",
		func(*workflow.Call, *struct{}, workflow.None) error { return nil }))
	code, _, stderr := runOver(t.Context(), []workflow.Source{broken}, "serve", "--address", "127.0.0.1:0", "--database",
		"postgres://127.0.0.1:1/x")
	assert.Truef(t, code == 1 && strings.Contains(stderr, "broken") && !strings.Contains(stderr, "connect"),
		"exit %d, %s", code, stderr)
}

func TestHelpDoesNotShowThePassword(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://me:sesame@127.0.0.1/x")
	code, stdout, stderr := run(t.Context(), "serve", "--help")
	assert.Truef(t, code == 0 && strings.Contains(stdout, "--database") && !strings.Contains(stdout+stderr, "sesame"),
		"exit %d\n%s%s", code, stdout, stderr)
	if code, stdout, _ := run(t.Context()); code != 0 || !strings.Contains(stdout, "migrate") {
		t.Errorf("without a command: exit %d\n%s", code, stdout)
	}
}

func TestDiagramIsDrawnInEveryFormat(t *testing.T) {
	for format, begin := range map[string]string{"mermaid": "stateDiagram-v2", "dot": "digraph", "svg": "<svg"} {
		code, stdout, stderr := run(t.Context(), "diagram", "order", "--format", format)
		assert.Truef(t, code == 0 && strings.HasPrefix(stdout, begin) && strings.Contains(stdout, "refunded"),
			"%s: exit %d, %s\n%.80s", format, code, stderr, stdout)
	}
}

func TestNewestVersionIsDrawn(t *testing.T) {
	define := func(version int) workflow.Source {
		return workflow.Define("w", version,
			workflow.Start("begin", "end", func(*workflow.Call, *struct{}, workflow.None) error { return nil })).Final("end")
	}
	w, err := newest([]workflow.Source{define(1), define(3), define(2)}, "w")
	assert.Truef(t, err == nil && w.Version == 3, "%+v, %v", w, err)
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
		}, "example.org/shop (devel), pawl (devel), go"},
	} {
		got := versionOf(tt.info).String()
		assert.Truef(t, strings.HasPrefix(got, tt.want), "got %q, want %q", got, tt.want)
	}
	code, stdout, _ := run(t.Context(), "version")
	assert.Truef(t, code == 0 && strings.Contains(stdout, "pawl"), "exit %d, %q", code, stdout)
	code, stdout, _ = run(t.Context(), "version", "-o", "json")
	assert.Truef(t, code == 0 && strings.Contains(stdout, `"go": "`+runtime.Version()+`"`), "exit %d, %q", code, stdout)
}
