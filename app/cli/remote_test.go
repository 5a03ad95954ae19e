package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/testkit/await"
)

// person calls commands of a service, or of its database if there is no service.
type person struct {
	t        *testing.T
	url      string
	database string
}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{t: t}
	p.url = serving(t, func(c *service.Config) { p.database = c.Database }).URL()
	return p
}

// calls runs a command.
func (p *person) calls(args ...string) (code int, stdout, stderr string) {
	if p.url == "" {
		return run(p.t.Context(), append(args, "--database", p.database)...)
	}
	return run(p.t.Context(), append(args, "--server", p.url)...)
}

// gets is what a command prints that has to succeed; its arguments have no blanks.
func (p *person) gets(args string) string {
	p.t.Helper()
	code, stdout, stderr := p.calls(strings.Fields(args)...)
	if code != 0 {
		p.t.Fatalf("%s: exit %d, %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// fails wants an exit code, and words of what is told.
func (p *person) fails(args string, want int, words string) {
	p.t.Helper()
	if code, stdout, stderr := p.calls(strings.Fields(args)...); code != want || !strings.Contains(stderr, words) {
		p.t.Errorf("%s: exit %d, want %d with %q\n%s%s", args, code, want, words, stdout, stderr)
	}
}

// places places an order of a customer.
func (p *person) places(cart string, more ...string) string {
	p.t.Helper()
	return p.gets(`submit order place {"customer":"c-1","cart":"` + cart + `","total":900000,"currency":"EUR"} ` + strings.Join(more, " "))
}

// read reads the JSON that a command prints.
func read[T any](p *person, args string) (v T) {
	p.t.Helper()
	text := p.gets(args)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		p.t.Fatalf("%s: %v in %s", args, err, text)
	}
	return v
}

func TestSubmitSubmitsOnceForEachKey(t *testing.T) {
	p := newPerson(t)
	first := p.places("k-1", "--key", "cart-1")
	receipt := regexp.MustCompile(`^instance    [0-9a-f-]{36}\nstate       placed, version 1\nposition    1\nkey         cart-1\n$`)
	assert.Truef(t, receipt.MatchString(first), "%q", first)
	assert.Equal(t, first+"replayed    it was done before\n", p.places("k-1", "--key", "cart-1"))
	p.fails(`submit order#c-1:k-1 ship {"carrier":"dhl","tracking":"1"}`, 5, "illegal_transition")
	p.fails(`submit order#c-1:k-1 cancel {"reason":"late"} --if-version 9`, 5, "version_conflict")
	p.fails("submit order#c-1:k-1 cancel", 5, "invalid_payload: the payload is not valid; /reason")
	p.fails("submit letter write", 5, "workflow_not_found")
	if code, _, stderr := p.calls("submit", "order", "place", `{"customer":"c-1","cart":"k-2","total":1,"currency":"EUR"}`, "--reason",
		"she called:\nit is Zoë"); code != 0 || !strings.Contains(p.gets("history order#c-1:k-2 -o json"), `she called:\nit is Zoë`) {
		t.Errorf("the history has no reason: exit %d, %s", code, stderr)
	}
	for args, want := range map[string]string{
		"submit order place {": "PAYLOAD is not JSON: line 1, column 2: ", "submit order": "TRANSITION is missing",
		"submit order# pay":         "names no instance",
		"submit order place --key=": "--key is empty", "submit order place --reason=": "--reason is empty",
		"submit order place --if-version -1":      "--if-version -1",
		"submit order place {} --not-before noon": "--not-before noon is not a time", "submit order place {} x": "one argument too many",
	} {
		p.fails(args, 2, want)
	}

	// In JSON, what was refused is there too.
	code, stdout, _ := p.calls("submit", "order#c-1:k-1", "ship", `{"carrier":"dhl","tracking":"1"}`, "--key", "s", "-o", "json")
	var told struct {
		Status int
		Code   string
	}
	if err := json.Unmarshal([]byte(stdout), &told); err != nil || code != 5 || told.Status != 409 || told.Code != "illegal_transition" {
		t.Errorf("exit %d, %s, %v", code, stdout, err)
	}
}

func TestSubmitReadsItsPayload(t *testing.T) {
	p := newPerson(t)
	file := filepath.Join(t.TempDir(), "order.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"customer":"c-1","cart":"k-1","total":1,"currency":"EUR"}`), 0o600))
	p.gets("submit order place @" + file)
	p.fails("submit order place @"+file+"x", 2, "read the payload")
	root := CommandLine()
	root.SetIn(strings.NewReader(`{"reason":"too late"}`))
	root.SetArgs([]string{"submit", "order#c-1:k-1", "cancel", "-", "--server", p.url})
	var out strings.Builder
	root.SetOut(&out)
	code := execute(t.Context(), root)
	assert.Truef(t, code == 0 && strings.Contains(out.String(), "cancelled, version 2"), "exit %d, %s", code, out.String())
}

// Who gets no answer is told with what to ask again.
func TestSubmitWithoutAnAnswerTellsTheKey(t *testing.T) {
	p := &person{t: t, url: "http://127.0.0.1:1"}
	code, stdout, stderr := p.calls("submit", "order", "place")
	assert.Truef(t, code == 6 && stdout == "" &&
		regexp.MustCompile(`^the key is [A-Z2-7]{26}: .*\nshop: timeout: no response: .* connection `+
			`refused\n$`).MatchString(stderr), "exit %d, %q, %q", code, stdout, stderr)
	p.fails("get order#1", 6, "connection refused")
}

func TestSubmit_WaitAndWatch(t *testing.T) {
	p := newPerson(t)
	p.places("k-1")
	assert.Contains(t, p.gets(`submit order#c-1:k-1 pay {"method":"card"} --wait`), "paid, version 3")
	p.places("k-2")
	began := p.gets(`submit order#c-1:k-2 pay {"method":"card"} --key pay-2`)
	scope := regexp.MustCompile(`(?m)^scope +(\S+)$`).FindStringSubmatch(began)
	require.Truef(t, scope != nil && strings.Contains(began, "in flight") && strings.Contains(began, "key         pay-2\n"),
		"%q", began)
	watched := p.gets("watch " + scope[1] + " pay-2")
	assert.True(t, strings.Contains(watched, "  succeeded") && strings.HasSuffix(watched, "key         pay-2\n") &&
		strings.Contains(watched, "paid, version 3") && !strings.Contains(watched, "replayed"),
		watched)
	lines := strings.Split(strings.TrimSuffix(p.gets("watch "+scope[1]+" pay-2 -o json"), "\n"), "\n")
	var last client.CommandStatus
	err := json.Unmarshal([]byte(lines[len(lines)-1]), &last)
	assert.Truef(t, err == nil && last.Status == "succeeded" && last.Key == "pay-2", "%q, %v", lines, err)
	p.places("k-3")
	p.fails(`submit order#c-1:k-3 pay {"method":"invoice"} --key pay-3 --wait`, 5, "activity_failed") // it is too much for an invoice
	p.fails("watch "+strings.Replace(scope[1], idOf(p, "order#c-1:k-2"), idOf(p, "order#c-1:k-3"), 1)+" pay-3", 5, "activity_failed")
	p.fails("watch "+scope[1]+" nobody", 5, "command_not_found")
}

// idOf is the id of an instance.
func idOf(p *person, instance string) string {
	return read[client.InstanceView](p, "get "+instance+" -o json").ID.String()
}

func TestGetShowsAnInstanceAndWhatWaitsOnIt(t *testing.T) {
	p := newPerson(t)
	p.places("k-1")
	got := p.gets("get order#c-1:k-1")
	for _, want := range []string{"workflow      order, version 1\nbusiness key  c-1:k-1\nstate         placed (open), version 1\n",
		"customer      c-1\n",
		`data          {`, "\ntimers\ndue ", "unpaid  expire\n"} {
		assert.Contains(t, got, want, "in")
	}
	v := read[client.InstanceView](p, "get order#c-1:k-1 -o json")
	assert.Truef(t, v.State == "placed" && len(v.Timers) == 1 && p.gets("get "+v.ID.String()) == got, "%+v", v)
	p.fails("get order#c-1:k-2", 5, "instance_not_found")
	p.fails("get c-1:k-1", 2, "give its id, or WORKFLOW#BUSINESS-KEY")
	p.fails("get 00000000-0000-0000-0000-000000000000", 2, "names no instance")
	p.fails("get order#c-1:k-1 --tenant other", 5, "instance_not_found")
	p.fails("get order#c-1:k-1 -o yaml", 2, "it is neither table nor json")
}

func TestListSelectsInstances(t *testing.T) {
	p := newPerson(t)
	for _, cart := range []string{"k-1", "k-2", "k-3"} {
		p.places(cart)
	}
	p.gets(`submit order#c-1:k-2 cancel {"reason":"late"}`)
	table := p.gets("list --newest")
	if lines := strings.Split(table, "\n"); len(lines) != 5 || !strings.HasPrefix(lines[0], "id  ") ||
		!strings.Contains(lines[1], "  order     c-1:k-2       cancelled        2  ") {
		t.Errorf("%s", table)
	}
	code, stdout, stderr := p.calls("list", "--limit", "2", "-o", "json")
	var list wire.InstancePage
	err := json.Unmarshal([]byte(stdout), &list)
	assert.Truef(t, code == 0 && err == nil && len(list.Instances) == 2 && stderr == "there are more: see --limit\n",
		"exit %d, %s%s, %v", code, stdout, stderr, err)
	if code, _, stderr := p.calls("list", "--limit", "2"); code != 0 || stderr != "there are more: see --limit\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	for args, want := range map[string]int{"": 3, "--state cancelled --state paid": 1, "--open": 2, "--open=false": 1,
		"--workflow order --attr customer=c-1":    3,
		"--workflow order --business-key c-1:k-3": 1, "--definition 2": 0, "--tenant other": 0} {
		got := read[wire.InstancePage](p, "list -o json "+args).Instances
		assert.Truef(t, len(got) == want && got != nil, "%s: %d, want %d", args, len(got), want)
	}
	p.fails("list --workflow letter", 5, "workflow_not_found")
	p.fails("list --workflow ordre", 5, "; did you mean order?")
	p.fails("get ordre#c-1:k-1", 5, "; did you mean order?")
	for args, want := range map[string]string{
		"--state paidd --state paid":     `no workflow declares a state "paidd"; did you mean paid?`,
		"--state paidd --workflow order": `the workflow "order" does not declare a state "paidd"; did you mean paid?`,
		"--state paid":                   "",
	} {
		code, stdout, stderr := p.calls(append(strings.Fields("list -o json "), strings.Fields(args)...)...)
		assert.Truef(t, code == 0 && stdout == "{\n  \"instances\": []\n}\n" && strings.TrimSpace(stderr) == want,
			"%s: exit %d, %s%s", args, code, stdout, stderr)
	}
	p.fails("list --limit 0", 2, "--limit 0")
	p.fails("list --definition 0", 2, "--definition 0")
}

func TestHistoryListsTransitions(t *testing.T) {
	p := newPerson(t)
	p.places("k-1", "--key", "a", "--actor", "ann")
	p.gets(`submit order#c-1:k-1 cancel {"reason":"late"} --key b --actor bob`)
	got := p.gets("history order#c-1:k-1")
	if !regexp.MustCompile(`^version  at +transition  from    to         actor  key  reason\n +1  \S+  place       -       placed     ann  ` +
		`  a    -\n +2  \S+  cancel      placed  cancelled  bob    b    late\n$`).MatchString(got) {
		t.Errorf("%s", got)
	}
	p.fails("history order#c-1:k-9", 5, "instance_not_found")
	p.fails("history order#c-1:k-1 --after -1", 2, "--after -1")
}

func TestCanSaysWhyNot(t *testing.T) {
	p := newPerson(t)
	p.places("k-1")
	got := p.gets("can order#c-1:k-1 --role clerk")
	for _, want := range []string{"transition  now  to", "\npay         yes  ", "\nship        no   shipped", "illegal_transition: "} {
		assert.Contains(t, got, want, "in")
	}
	assert.Equal(t, "yes, cancel to cancelled\n", p.gets("can order#c-1:k-1 cancel"))
	o := read[client.Options](p, "can order#c-1:k-1 cancel -o json")
	assert.Truef(t, len(o.Transitions) == 1 && o.Transitions[0].Allowed, "%+v", o)
	p.fails("can order#c-1:k-1 ship", 1, "not ship: illegal_transition: ")
	p.fails("can order#c-1:k-1 burn", 2, `unknown transition "burn"; there are: `)
	p.fails("can order#c-1:k-9", 5, "instance_not_found")
}

func TestTailGoesOnWhereItEnded(t *testing.T) {
	p := newPerson(t)
	for _, cart := range []string{"k-1", "k-2", "k-3"} {
		p.places(cart, "--actor", "ann")
	}
	code, stdout, stderr := p.calls("tail", "--after", "start", "-n", "2")
	want := regexp.MustCompile(`^1  \S+  order#c-1:k-1  place: - -> placed, by ann\n2  \S+  order#c-1:k-2  place: - -> placed, by ann\n$`)
	assert.Truef(t, code == 0 && want.MatchString(stdout) && stderr == "go on with --after 2\n",
		"exit %d, %q, %q", code, stdout, stderr)
	e := read[client.Event](p, "tail --after 2 -n 1 -o json --workflow order --state placed --type order.place --attr customer=c-1")
	assert.Truef(t, e.Cursor == 3 && e.Subject == "c-1:k-3" && e.Position == 3, "%+v", e)
	if e := read[client.Event](p, "tail --after start -n 1 -o json --instance "+idOf(p, "order#c-1:k-2")); e.Subject != "c-1:k-2" {
		t.Errorf("%+v", e)
	}
	p.fails("tail --after 99", 5, "invalid_request")
	p.fails("tail --after yesterday", 2, "--after yesterday is not start, now or a position")
	p.fails("tail --instance x", 2, "--instance is not a UUID")
	p.fails("tail -n -1", 2, "--count -1")

	p.count("WITH gone AS (DELETE FROM pawl.outbox WHERE position <= 2 RETURNING 1) SELECT count(*) FROM gone")
	code, _, stderr = p.calls("tail", "--after", "0")
	assert.Truef(t, code == 5 && strings.HasPrefix(stderr, "go on with --after 2\nshop: events_gone: "), "exit %d, %q", code, stderr)
}

// count is the number that a query has for an answer.
func (p *person) count(query string) (n int) {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.database)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close(p.t.Context()) }()
	if err := conn.QueryRow(p.t.Context(), query).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// screen is where a command prints that goes on.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// has waits for a text.
func (s *screen) has(t *testing.T, want string) {
	t.Helper()
	await.Eventually(t, want+" is printed", func() bool { return strings.Contains(s.String(), want) })
}

// String is what was printed.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// gate stands before a server, and can be shut.
type gate struct {
	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

// before opens a gate before a server, and returns the URL that leads through it.
func (g *gate) before(t *testing.T, server string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { g.pass(conn, strings.TrimPrefix(server, "http://")) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.set(true)
		passing.Wait()
	})
	return "http://" + l.Addr().String()
}

func (g *gate) pass(near net.Conn, server string) {
	defer near.Close()
	far, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer far.Close()
	g.mu.Lock()
	shut := g.shut
	g.conns = append(g.conns, near, far)
	g.mu.Unlock()
	if shut {
		return
	}
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// set shuts the gate, also for those who are in it, or opens it.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, conn := range g.conns {
			_ = conn.Close()
		}
		g.conns = nil
	}
}

// An outage is reported once at its start and once at its end, and the last line names the position to continue from.
func TestTailGoesOnAfterAnOutage(t *testing.T) {
	p := newPerson(t)
	p.places("k-1")
	g := &gate{}
	through := g.before(t, p.url)
	var stdout, stderr screen
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	root := CommandLine()
	root.Use = "shop"
	root.SetArgs([]string{"tail", "--after", "start", "--server", through})
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code := make(chan int, 1)
	go func() { code <- execute(ctx, root) }()
	stdout.has(t, "order#c-1:k-1")
	g.set(true)
	stderr.has(t, "; trying again\n")
	p.places("k-2")
	g.set(false)
	stdout.has(t, "order#c-1:k-2")
	interrupt()
	if got := await.Receive(t, "it ends", code); got != 0 || strings.Count(stderr.String(), "trying again") != 1 ||
		!strings.HasSuffix(stderr.String(), "\nconnected again\ngo on with --after 2\n") || strings.Count(stdout.String(), "\n") != 2 {
		t.Errorf("exit %d, %s%s", got, stdout.String(), stderr.String())
	}
}

// With -o json a line is the whole CloudEvent, as other tools want it, and the cursor.
func TestTailTellsWholeCloudEvents(t *testing.T) {
	p := newPerson(t)
	p.places("k-1", "--actor", "ann")
	response, err := http.Get(p.url + "/v1/events?after=start")
	require.NoError(t, err)
	defer response.Body.Close()
	var log struct{ Events []map[string]any }
	err = json.NewDecoder(response.Body).Decode(&log)
	require.Truef(t, err == nil && len(log.Events) == 1, "%+v, %v", log, err)
	want := log.Events[0]
	want["cursor"] = "1"
	got := read[map[string]any](p, "tail --after start -n 1 -o json")
	assert.Truef(t, got["specversion"] == "1.0" && got["datacontenttype"] == "application/json" && reflect.DeepEqual(got, want),
		"got  %v\nwant %v", got, want)
}

// heard calls a function when something is written.
type heard func()

func (f heard) Write(b []byte) (int, error) { f(); return len(b), nil }

// To be interrupted is how it ends.
func TestTailEndsWhenItIsInterrupted(t *testing.T) {
	p := newPerson(t)
	p.places("k-1")
	ctx, interrupt := context.WithCancel(t.Context())
	root := CommandLine()
	root.SetArgs([]string{"tail", "--after", "start", "--server", p.url})
	root.SetOut(heard(interrupt))
	var stderr strings.Builder
	root.SetErr(&stderr)
	code := execute(ctx, root)
	assert.Truef(t, code == 0 && stderr.String() == "go on with --after 1\n", "exit %d, %q", code, stderr.String())
	ended, end := context.WithCancel(t.Context())
	end()
	if code, _, stderr := run(ended, "get", "order#c-1:k-1", "--server", p.url); code != 1 || stderr != "shop: interrupted\n" {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestCommandsAskTheServersOfTheVariable(t *testing.T) {
	p := newPerson(t)
	t.Setenv(flags.EnvURL, "http://127.0.0.1:1,"+p.url)
	code, stdout, stderr := run(t.Context(), "list", "-o", "json")
	assert.Truef(t, code == 0 && stdout == "{\n  \"instances\": []\n}\n", "exit %d, %s%s", code, stdout, stderr)
	code, stdout, stderr = run(t.Context(), "auth", "can-i", "read")
	assert.Equalf(t, 0, code, "exit, %s%s", stdout, stderr)
	for url, want := range map[string]string{"localhost": "--server is not the URL of a server",
		"http://ann:sesame@localhost": "--server has a user name or a password in it, which no server takes: give the credential in PAWL_TOKEN"} {
		t.Setenv(flags.EnvURL, url)
		code, _, stderr := run(t.Context(), "list")
		assert.Truef(t, code == 2 && strings.Contains(stderr, want) && !strings.Contains(stderr, "sesame"), "exit %d, %s", code, stderr)
	}
}

func TestCommandsShowTheirCredential(t *testing.T) {
	var database string
	s := serving(t, func(c *service.Config) { c.Auth.Keys, database = true, c.Database })
	code, key, stderr := run(t.Context(), "keys", "create", "ann", "--grant", "read", "--database", database)
	require.Equal(t, 0, code, stderr)
	p := &person{t: t, url: s.URL()}
	t.Setenv(flags.EnvToken, "")
	p.fails("list", 5, "unauthorized: ")
	p.fails("list", 5, "; the credential has to be in PAWL_TOKEN, which is not set")
	t.Setenv(flags.EnvToken, "pawl_nobody")
	p.fails("list", 5, "; the credential is the one in PAWL_TOKEN")
	t.Setenv(flags.EnvToken, strings.TrimSpace(key))
	await.Eventually(t, "the key is taken", func() bool { code, _, _ := p.calls("list"); return code == 0 })
	p.fails("submit order place", 5, "forbidden")
	p.fails("submit order place", 5, `; "auth can-i GRANT" says what the credential in PAWL_TOKEN may`)
	p.fails("list --tenant other", 5, "invalid_request")
}

func TestShellsCompleteCommandsAndFormats(t *testing.T) {
	for args, want := range map[string]string{"completion bash": "__start_shop", "completion zsh": "#compdef shop",
		"completion fish": "complete -c shop",
		"__complete his":  "history\t", "__complete list -o ": "table\njson\n:4", "__complete ops stuck -o ": "table\njson\n:4",
		"__complete tail --aft": "--after\t"} {
		list := strings.Fields(args)
		if strings.HasSuffix(args, " ") {
			list = append(list, "")
		}
		code, stdout, stderr := run(t.Context(), list...)
		assert.Truef(t, code == 0 && strings.Contains(stdout, want), "%s: exit %d, %.300s%s", args, code, stdout, stderr)
	}
}

func TestExitCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, help, _ := run(t.Context(), "--help")
	for line := range strings.Lines(flags.ExitCodes()) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if row := "| " + code + " | " + meaning + " |\n"; !strings.Contains(string(page), row) || !strings.Contains(help, line) {
			t.Errorf("the page or the help does not have %q", row)
		}
	}
}

var shellWord = regexp.MustCompile(`'[^']*'|\S+`)

// What the page shows of a conversation is what comes.
func TestCommandLinePageIsAsItSays(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, block, _ := strings.Cut(string(page), "```console\n")
	block, _, _ = strings.Cut(block, "```\n")
	p, ran := newPerson(t), 0
	for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step+"\n", "\n")
		if !strings.HasPrefix(command, "pawl ") {
			continue
		}
		var args []string
		for _, word := range shellWord.FindAllString(command, -1)[1:] {
			args = append(args, strings.Trim(word, "'"))
		}
		_, stdout, stderr := p.calls(args...)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(want, "\n")), "…", ".*")
		got := strings.TrimSuffix(stdout+strings.ReplaceAll(stderr, "shop: ", "pawl: "), "\n")
		assert.Truef(t, regexp.MustCompile("^"+pattern+
			"$").MatchString(got), "%s\n got %s\nwant %s", command, got, want)
		ran++
	}
	assert.Equal(t, 4, ran, "commands")
}
