package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

func TestSubmit_Answers(t *testing.T) {
	u := newUser(t)
	first := u.places("k-1", "--key", "cart-1")
	assert.Regexp(t, `^instance    [0-9a-f-]{36}\nstate       placed, version 1\nposition    1\nkey         cart-1\n$`, first)
	assert.Equal(t, first+"replayed    the command was executed before\n", u.places("k-1", "--key", "cart-1"))
	u.fails(`submit order#c-1:k-1 ship {"carrier":"dhl","tracking":"1"}`, 5, "illegal_transition")
	u.fails(`submit order#c-1:k-1 cancel {"reason":"late"} --if-version 9`, 5, "version_conflict")
	u.fails("submit order#c-1:k-1 cancel", 5, "invalid_payload: the payload is not valid; /reason")
	u.fails("submit letter write", 5, "workflow_not_found")
	for args, want := range map[string]string{
		"submit order place {": "PAYLOAD is not JSON: line 1, column 2: ", "submit order": "TRANSITION is missing",
		"submit order# pay":         "names no instance",
		"submit order place --key=": "--key is empty", "submit order place --reason=": "--reason is empty",
		"submit order place --if-version -1":      "--if-version -1",
		"submit order place {} --not-before noon": "--not-before noon is not a time", "submit order place {} x": "one argument too many",
	} {
		u.fails(args, 2, want)
	}
	// With -o json, a refusal is printed as JSON too.
	code, stdout, _ := u.calls("submit", "order#c-1:k-1", "ship", `{"carrier":"dhl","tracking":"1"}`, "--key", "s", "-o", "json")
	var refusal struct {
		Status int
		Code   string
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &refusal), stdout)
	assert.Equal(t, 5, code)
	assert.Equal(t, 409, refusal.Status)
	assert.Equal(t, "illegal_transition", refusal.Code)
}

func TestSubmitReadsItsPayload(t *testing.T) {
	u := newUser(t)
	file := filepath.Join(t.TempDir(), "order.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"customer":"c-1","cart":"k-1","total":1,"currency":"EUR"}`), 0o600))
	code, _, stderr := u.calls("submit", "order", "place", "@"+file, "--reason", "she called:\nit is Zoë")
	require.Equal(t, 0, code, stderr)
	assert.Contains(t, u.gets("history order#c-1:k-1 -o json"), `she called:\nit is Zoë`)
	u.fails("submit order place @"+file+"x", 2, "read the payload")
	root := CommandLine()
	root.SetIn(strings.NewReader(`{"reason":"too late"}`))
	root.SetArgs([]string{"submit", "order#c-1:k-1", "cancel", "-", "--server", u.url})
	var out strings.Builder
	root.SetOut(&out)
	assert.Equal(t, 0, execute(t.Context(), root))
	assert.Contains(t, out.String(), "cancelled, version 2")
}

// Without an answer, the key to retry with is printed.
func TestSubmitPrintsTheKey_NoAnswer(t *testing.T) {
	u := &user{t: t, url: "http://127.0.0.1:1"}
	code, stdout, stderr := u.calls("submit", "order", "place")
	assert.Equal(t, flags.ExitNoAnswer, code)
	assert.Empty(t, stdout)
	assert.Regexp(t, `^the key is [A-Z2-7]{26}: .*\nshop: timeout: no response: .* connection refused\n$`, stderr)
	u.fails("get order#1", 6, "connection refused")
}

func TestSubmit_WaitAndWatch(t *testing.T) {
	u := newUser(t)
	u.places("k-1")
	assert.Contains(t, u.gets(`submit order#c-1:k-1 pay {"method":"card"} --wait`), "paid, version 3")
	u.places("k-2")
	started := u.gets(`submit order#c-1:k-2 pay {"method":"card"} --key pay-2`)
	assert.Contains(t, started, "in flight")
	assert.Contains(t, started, "key         pay-2\n")
	scope := regexp.MustCompile(`(?m)^scope +(\S+)$`).FindStringSubmatch(started)
	require.NotNil(t, scope, started)
	assert.Regexp(t, `(?s)  succeeded.*paid, version 3.*key         pay-2\n$`, u.gets("watch "+scope[1]+" pay-2"))
	last := read[client.CommandStatus](u, "watch "+scope[1]+" pay-2 -o json")
	assert.Equal(t, "pay-2", last.Key)
	u.places("k-3")
	u.fails(`submit order#c-1:k-3 pay {"method":"invoice"} --key pay-3 --wait`, 5, "activity_failed") // it is too much for an invoice
	u.fails("watch "+strings.Replace(scope[1], idOf(u, "order#c-1:k-2"), idOf(u, "order#c-1:k-3"), 1)+" pay-3", 5, "activity_failed")
	u.fails("watch "+scope[1]+" nobody", 5, "command_not_found")
}

func TestGetHistoryAndCan(t *testing.T) {
	u := newUser(t)
	u.places("k-1", "--key", "a", "--actor", "ann")
	got := u.gets("get order#c-1:k-1")
	for _, want := range []string{"workflow      order, version 1\nbusiness key  c-1:k-1\nstate         placed (open), version 1\n",
		"customer      c-1\n", `data          {`, "\ntimers\ndue ", "unpaid  expire\n"} {
		assert.Contains(t, got, want)
	}
	assert.Equal(t, got, u.gets("get "+idOf(u, "order#c-1:k-1")))
	for _, want := range []string{"transition  now  to", "\npay         yes  ", "\nship        no   shipped", "illegal_transition: "} {
		assert.Contains(t, u.gets("can order#c-1:k-1 --role clerk"), want)
	}
	assert.Equal(t, "yes, cancel to cancelled\n", u.gets("can order#c-1:k-1 cancel"))
	options := read[client.Options](u, "can order#c-1:k-1 cancel -o json")
	require.Len(t, options.Transitions, 1)
	assert.True(t, options.Transitions[0].Allowed)
	u.gets(`submit order#c-1:k-1 cancel {"reason":"late"} --key b --actor bob`)
	assert.Regexp(t, `^version  at +transition  from    to         actor  key  reason\n +1  \S+  place       -       placed     ann    a    -\n`+
		` +2  \S+  cancel      placed  cancelled  bob    b    late\n$`, u.gets("history order#c-1:k-1"))
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"get order#c-1:k-2", 5, "instance_not_found"},
		{"get order#c-1:k-1 --tenant other", 5, "instance_not_found"},
		{"get ordre#c-1:k-1", 5, "; did you mean order?"},
		{"get c-1:k-1", 2, "give its id, or WORKFLOW#BUSINESS-KEY"},
		{"get 00000000-0000-0000-0000-000000000000", 2, "names no instance"},
		{"get order#c-1:k-1 -o yaml", 2, "it is neither table nor json"},
		{"history order#c-1:k-9", 5, "instance_not_found"},
		{"history order#c-1:k-1 --after -1", 2, "--after -1"},
		{"can order#c-1:k-1 ship", 1, "not ship: illegal_transition: "},
		{"can order#c-1:k-1 burn", 2, `unknown transition "burn"; there are: `},
		{"can order#c-1:k-9", 5, "instance_not_found"},
	} {
		u.fails(c.args, c.code, c.want)
	}
}

func TestListSelectsInstances(t *testing.T) {
	u := newUser(t)
	for _, cart := range []string{"k-1", "k-2", "k-3"} {
		u.places(cart)
	}
	u.gets(`submit order#c-1:k-2 cancel {"reason":"late"}`)
	assert.Regexp(t, `^id  .*\n.*  order     c-1:k-2       cancelled        2  .*\n.*\n.*\n$`, u.gets("list --newest"))
	for _, format := range []string{"table", "json"} {
		code, _, stderr := u.calls("list", "--limit", "2", "-o", format)
		assert.Equal(t, 0, code)
		assert.Equal(t, "there are more: see --limit\n", stderr)
	}
	for args, want := range map[string]int{"": 3, "--state cancelled --state paid": 1, "--open": 2, "--open=false": 1,
		"--workflow order --attr customer=c-1":    3,
		"--workflow order --business-key c-1:k-3": 1, "--definition 2": 0, "--tenant other": 0} {
		assert.Len(t, read[wire.InstancePage](u, "list -o json "+args).Instances, want, args)
	}
	u.fails("list --workflow letter", 5, "workflow_not_found")
	u.fails("list --workflow ordre", 5, "; did you mean order?")
	u.fails("list --limit 0", 2, "--limit 0")
	u.fails("list --definition 0", 2, "--definition 0")
	for args, want := range map[string]string{
		"--state paidd --state paid":     `no workflow declares a state "paidd"; did you mean paid?`,
		"--state paidd --workflow order": `the workflow "order" does not declare a state "paidd"; did you mean paid?`,
		"--state paid":                   "",
	} {
		code, stdout, stderr := u.calls(strings.Fields("list -o json " + args)...)
		assert.Equal(t, 0, code, args)
		assert.Equal(t, noInstances, stdout, args)
		assert.Equal(t, want, strings.TrimSpace(stderr), args)
	}
}

const noInstances = "{\n  \"instances\": []\n}\n"

func TestTail_FiltersAndPositions(t *testing.T) {
	u := newUser(t)
	for _, cart := range []string{"k-1", "k-2", "k-3"} {
		u.places(cart, "--actor", "ann")
	}
	code, stdout, stderr := u.calls("tail", "--after", "start", "-n", "2")
	assert.Equal(t, 0, code)
	assert.Regexp(t, `^1  \S+  order#c-1:k-1  place: - -> placed, by ann\n2  \S+  order#c-1:k-2  place: - -> placed, by ann\n$`, stdout)
	assert.Equal(t, "resume with --after 2\n", stderr)
	e := read[client.Event](u, "tail --after start -n 1 -o json --instance "+idOf(u, "order#c-1:k-2"))
	assert.Equal(t, "c-1:k-2", e.Subject)
	// With -o json a line is the whole CloudEvent with its cursor.
	response, err := http.Get(u.url + "/v1/events?after=2")
	require.NoError(t, err)
	defer response.Body.Close()
	var log struct{ Events []map[string]any }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&log))
	require.Len(t, log.Events, 1)
	log.Events[0]["cursor"] = "3"
	got := read[map[string]any](u, "tail --after 2 -n 1 -o json --workflow order --state placed --type order.place --attr customer=c-1")
	assert.Equal(t, log.Events[0], got)
	u.fails("tail --after 99", 5, "invalid_request")
	u.fails("tail --after yesterday", 2, "--after yesterday is not start, now or a position")
	u.fails("tail --instance x", 2, "--instance is not a UUID")
	u.fails("tail -n -1", 2, "--count -1")
	u.count("WITH gone AS (DELETE FROM pawl.outbox WHERE position <= 2 RETURNING 1) SELECT count(*) FROM gone")
	u.fails("tail --after 0", 5, "resume with --after 2\nshop: events_gone: ")
}

// screen holds what a running command has printed.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) has(t *testing.T, want string) {
	t.Helper()
	await.Eventually(t, want+" is printed", func() bool { return strings.Contains(s.String(), want) })
}

// An outage is reported once at its start and once at its end, an interrupt is a normal end,
// and the last line names the position to continue from.
func TestTailContinuesAfterAnOutage(t *testing.T) {
	u := &user{t: t}
	s := serving(t, func(c *service.Config) { u.database = c.Database })
	u.url = s.URL()
	u.places("k-1")
	var stdout, stderr screen
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	root := CommandLine()
	root.SetArgs([]string{"tail", "--after", "start", "--server", u.url})
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code := make(chan int, 1)
	go func() { code <- execute(ctx, root) }()
	stdout.has(t, "order#c-1:k-1")
	require.NoError(t, s.Stop(t.Context()))
	stderr.has(t, "; retrying\n")
	serving(t, func(c *service.Config) { c.Database, c.Address = u.database, strings.TrimPrefix(u.url, "http://") })
	u.places("k-2")
	stdout.has(t, "order#c-1:k-2")
	interrupt()
	assert.Equal(t, 0, await.Receive(t, "the end", code))
	assert.Equal(t, 1, strings.Count(stderr.String(), "retrying"))
	assert.True(t, strings.HasSuffix(stderr.String(), "\nreconnected\nresume with --after 2\n"), &stderr)
	interrupted, _, told := run(ctx, "get", "order#c-1:k-1", "--server", u.url)
	assert.Equal(t, 1, interrupted)
	assert.Equal(t, "shop: interrupted\n", told)
}

// Commands do the same on a database as on a server, and those that only read write nothing.
func TestCommandsOnADatabase(t *testing.T) {
	u := &user{t: t, database: pgtest.URL(t)}
	u.gets("migrate up")
	assert.Equal(t, noInstances, u.gets("list -o json"))
	u.fails("get order#c-1:k-1", 5, "instance_not_found")
	assert.Zero(t, u.count("SELECT count(*) FROM pawl.definition"))
	u.fails("ops abandon scope key", 1, "command_not_found")
	assert.Zero(t, u.count("SELECT count(*) FROM pawl.horizon"))
	assert.Contains(t, u.places("k-1", "--key", "cart-1", "--actor", "ann"), "placed, version 1")
	assert.Contains(t, u.places("k-1", "--key", "cart-1", "--actor", "ann"), "replayed    the command was executed before")
	assert.Len(t, read[wire.InstancePage](u, "list --state placed -o json").Instances, 1)
	assert.Contains(t, u.gets("history order#c-1:k-1"), "  ann  ")
	assert.Equal(t, "yes, cancel to cancelled\n", u.gets("can order#c-1:k-1 cancel"))
	assert.Contains(t, u.gets("tail --after start -n 1"), "order#c-1:k-1  place: - -> placed, by ann")
	u.fails("list --tenant other --workflow letter", 5, "workflow_not_found")

	// A program without the workflow can read, but not submit.
	id := idOf(u, "order#c-1:k-1")
	nothing := func(*workflow.Call, *struct{}, workflow.None) error { return nil }
	others := []workflow.Source{workflow.Define("letter", 1, workflow.Start("write", "done", nothing)).Final("done")}
	for args, want := range map[string]string{
		"submit order place {}":          "use the program that has this one, or ask a server (--server)",
		"submit " + id + " cancel {}":    "use the program that has this one, or ask a server (--server)",
		"submit lettre write":            "did you mean letter?; on a database this program decides the command",
		"submit letter write --server x": "--server and --database exclude each other",
	} {
		code, stdout, stderr := runOver(t.Context(), others, append(strings.Fields(args), "--database", u.database)...)
		assert.NotZero(t, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, want, args)
	}
	code, stdout, _ := runOver(t.Context(), others, "get", id, "--database", u.database)
	assert.Equal(t, 0, code)
	assert.Contains(t, stdout, "placed (open)")

	// Activities are left to nodes.
	assert.Contains(t, u.gets(`submit order#c-1:k-1 pay {"method":"card"} --scope till --key pay-1`), "in flight")
	serving(t, func(c *service.Config) { c.Database = u.database })
	assert.Contains(t, u.gets("watch till pay-1"), "paid, version 3")
}

func TestServersOfTheEnvironment(t *testing.T) {
	u := newUser(t)
	t.Setenv(flags.EnvURL, "http://127.0.0.1:1,"+u.url)
	code, stdout, stderr := run(t.Context(), "list", "-o", "json")
	assert.Equal(t, 0, code, stderr)
	assert.Equal(t, noInstances, stdout)
	code, _, stderr = run(t.Context(), "auth", "can-i", "read")
	assert.Equal(t, 0, code, stderr)
	for url, want := range map[string]string{"localhost": "--server is not the URL of a server",
		"http://ann:sesame@localhost": "--server contains a user name or a password: set the credential in PAWL_TOKEN"} {
		t.Setenv(flags.EnvURL, url)
		code, _, stderr := run(t.Context(), "list")
		assert.Equal(t, 2, code)
		assert.Contains(t, stderr, want)
		assert.NotContains(t, stderr, "sesame")
	}
}

var shellWord = regexp.MustCompile(`'[^']*'|\S+`)

func TestCommandLinePageExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, block, _ := strings.Cut(string(page), "```console\n")
	block, _, _ = strings.Cut(block, "```\n")
	u, ran := newUser(t), 0
	for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step+"\n", "\n")
		if !strings.HasPrefix(command, "pawl ") {
			continue
		}
		var args []string
		for _, word := range shellWord.FindAllString(command, -1)[1:] {
			args = append(args, strings.Trim(word, "'"))
		}
		_, stdout, stderr := u.calls(args...)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(want, "\n")), "…", ".*")
		got := strings.TrimSuffix(stdout+strings.ReplaceAll(stderr, "shop: ", "pawl: "), "\n")
		assert.Regexp(t, "^"+pattern+"$", got, command)
		ran++
	}
	assert.Equal(t, 4, ran, "commands")
}
