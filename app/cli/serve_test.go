package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/sdnotify/sdnotifytest"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
	"github.com/pawlhq/pawl/workflow"
)

// place places an order, each time with the same key.
func place(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/workflows/order/place",
		strings.NewReader(`{"customer":"c-1","cart":"k-9","total":129900,"currency":"EUR"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// started is a running serve command.
type started struct {
	url    string
	log    *screen
	stdout *screen
	code   <-chan int
}

// startServe runs the serve command until ctx ends, or a signal comes.
func startServe(t *testing.T, run func(*cobra.Command) int, workflows []workflow.Source, args ...string) *started {
	t.Helper()
	code := make(chan int, 1)
	s := &started{log: &screen{}, stdout: &screen{}, code: code}
	root := CommandLine(workflows...)
	root.SetArgs(append([]string{"serve", "--address", "127.0.0.1:0", "--database", pgtest.URL(t)}, args...))
	root.SetErr(s.log)
	root.SetOut(s.stdout)
	go func() { code <- run(root) }()
	s.log.has(t, "msg=serving url=")
	_, rest, _ := strings.Cut(s.log.String(), "msg=serving url=")
	s.url = strings.Fields(rest)[0]
	return s
}

// systemd learns when the service is ready, lives and stops; SIGTERM stops it.
func TestServe_SystemdAndSIGTERM(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	systemd := sdnotifytest.Listen(t, name)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "150000")
	t.Setenv("WATCHDOG_PID", "")
	version := func(n int) workflow.Source {
		return workflow.Define("note", n, workflow.Start("write", "written",
			func(*workflow.Call, *struct{}, workflow.None) error { return nil })).
			Final("written")
	}
	s := startServe(t, Execute, []workflow.Source{version(1), order.Workflow(provider.New()), version(20_000_000)})
	assert.Contains(t, s.log.String(), `workflows="note v20000000 v1, order v1"`)
	assert.Equal(t, "READY=1\nSTATUS=serving "+s.url, systemd.Hear(t))
	r, err := http.Get(s.url + "/readyz")
	require.NoError(t, err)
	r.Body.Close()
	assert.Equal(t, http.StatusOK, r.StatusCode)
	assert.Equal(t, "WATCHDOG=1", systemd.Hear(t))
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
	got := "WATCHDOG=1"
	for got == "WATCHDOG=1" {
		got = systemd.Hear(t)
	}
	assert.Equal(t, "STOPPING=1\nSTATUS=stopping", got)
	assert.Equal(t, 0, await.Receive(t, "the end", s.code))
	assert.Contains(t, s.log.String(), "msg=stopping")
}

// Without workers a node leaves activities to other nodes.
func TestServeWithoutWorkers(t *testing.T) {
	c, err := inFlight(engine.InFlightConfig{Lease: time.Minute})
	assert.NoError(t, err)
	assert.Equal(t, engine.InFlightConfig{Workers: -1, Lease: time.Minute}, c)
}

// hook receives webhooks and checks their signatures.
func hook(t *testing.T, secret signature.Secret) (address string, ids <-chan string) {
	t.Helper()
	got := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		id, err := signature.Verify([]signature.Secret{secret}, r.Header, body, time.Now(), signature.Tolerance)
		if err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		got <- id
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}

func TestServeDeliversToSinksOfFlags(t *testing.T) {
	secret, old := signature.NewSecret(), signature.NewSecret()
	address, ids := hook(t, old)
	named, namedIDs := hook(t, secret)
	t.Setenv("PAWL_SINK_OF_ADDRESS_SECRET", secret.Reveal()+" "+old.Reveal())
	t.Setenv("PAWL_SINK_OF_NAME_SECRET", secret.Reveal())
	broker := natstest.Start(t)
	conn, err := nats.Connect(broker.URL())
	require.NoError(t, err)
	defer conn.Close()
	published, err := conn.SubscribeSync("shop.order")
	require.NoError(t, err)
	require.NoError(t, conn.Flush())
	path := filepath.Join(t.TempDir(), "events")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := startServe(t, func(c *cobra.Command) int { return execute(ctx, c) }, []workflow.Source{order.Workflow(provider.New())},
		"--sink", "of-address="+address, "--sink", "of.name="+strings.Replace(named, "127.0.0.1", "localhost", 1),
		"--sink", "bus="+broker.URL()+"?stream=SHOP&subject=shop.{workflow}", "--sink", "file=file://"+path, "--sink", "out=file:-")
	code, body := place(t, s.url)
	require.Equal(t, 201, code, body)
	s.stdout.has(t, `{"specversion":"1.0","id":"1-0"`)
	await.Receive(t, "a delivery to the address", ids)
	await.Receive(t, "a delivery to the name", namedIDs)
	m, err := published.NextMsg(time.Minute)
	require.NoError(t, err)
	assert.Contains(t, string(m.Data), `"type":"order.place"`)
	await.Eventually(t, "the file has an event", func() bool {
		events, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(events), "\n")
	})
	cancel()
	assert.Equal(t, flags.ExitOK, await.Receive(t, "the end", s.code))
}

func TestSinkFromNow(t *testing.T) {
	for names, want := range map[string][]relay.Sink{
		"":    {{Name: "a"}, {Name: "b"}, {Name: "c"}},
		"b":   {{Name: "a"}, {Name: "b", FromNow: true}, {Name: "c"}},
		"a,c": {{Name: "a", FromNow: true}, {Name: "b"}, {Name: "c", FromNow: true}},
	} {
		list := []relay.Sink{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		assert.NoError(t, beginNow(list, strings.FieldsFunc(names, func(r rune) bool { return r == ',' })))
		assert.Equal(t, want, list, names)
	}
}

// Two webhooks must not share an environment variable for their secrets.
func TestWebhookSecrets_Variables(t *testing.T) {
	t.Setenv("PAWL_SINK_A_B_SECRET", signature.NewSecret().Reveal())
	code, _, stderr := run(t.Context(), "serve", "--sink", "a-b=https://example.com/1", "--sink", "a.b=https://example.com/2")
	assert.Equal(t, flags.ExitUsage, code)
	assert.Contains(t, stderr, "--sink a-b and a.b would have their secrets in one variable, PAWL_SINK_A_B_SECRET")
}

func TestInboxSecrets_Environment(t *testing.T) {
	one, two := signature.NewSecret(), signature.NewSecret()
	t.Setenv("PAWL_INBOX_A_B_1_SECRET", " "+one.Reveal()+"\n"+two.Reveal())
	t.Setenv("PAWL_INBOX_SHOWN_SECRET", one.Reveal()+" whsec_sesame")
	got, err := inboxOf([]string{"a-b.1=acme"})
	require.NoError(t, err)
	assert.Equal(t, "acme", got["a-b.1"].Tenant)
	require.Len(t, got["a-b.1"].Secrets, 2)
	assert.Equal(t, two.Reveal(), got["a-b.1"].Secrets[1].Reveal())
	for args, want := range map[string]string{
		"":              `--inbox "" is neither CONSUMER nor CONSUMER=TENANT`,
		"=acme":         `--inbox "=acme" is neither`,
		"a-b.1=":        `--inbox "a-b.1=" is neither`,
		"none":          `--inbox "none": PAWL_INBOX_NONE_SECRET: the secret is missing`,
		"shown":         `--inbox "shown": PAWL_INBOX_SHOWN_SECRET: secret 2: webhook secret`,
		"a-b.1 a-b.1":   `--inbox names "a-b.1" twice`,
		"a-b.1 A_B_1=x": `--inbox "a-b.1" and "A_B_1" would have their secrets in one variable, PAWL_INBOX_A_B_1_SECRET`,
	} {
		_, err := inboxOf(strings.Split(args, " "))
		assert.ErrorAs(t, err, new(*usage.Error), args)
		assert.ErrorContains(t, err, want, args)
		assert.NotContains(t, fmt.Sprint(err), "sesame")
	}
}

func TestInboxKeep(t *testing.T) {
	consumers := map[string]service.InboxConsumer{"bank": {}, "post": {}}
	assert.NoError(t, keptFor(consumers, []string{"bank=720h"}))
	assert.Equal(t, map[string]service.InboxConsumer{"bank": {Keep: 720 * time.Hour}, "post": {}}, consumers)
	for args, want := range map[string]string{
		"post": "is not CONSUMER=DURATION", "post=": "is not", "post=30": "is not", "post=0s": "is not", "post=-1h": "is not",
		"post=99999999h": "is not", "post=90000h": "longer than 3660 days", "other=1h": "--inbox other is not given",
		"post=1h post=2h": `names "post" twice`,
	} {
		consumers := map[string]service.InboxConsumer{"post": {}}
		err := keptFor(consumers, strings.Split(args, " "))
		assert.ErrorAs(t, err, new(*usage.Error), args)
		assert.ErrorContains(t, err, want, args)
	}
}
