package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/natstest"
)

// hook is a receiver of webhooks that takes what is signed.
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

// A node that is started with receivers of each kind delivers to all of them.
func TestServeDeliversToTheSinksOfItsFlags(t *testing.T) {
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
	r, w := io.Pipe()
	ended := make(chan error, 1)
	root := CommandLine(order.Workflow(provider.New()))
	root.SetArgs([]string{"serve", "--address", "127.0.0.1:0", "--database", pgtest.URL(t), "--sink", "of-address=" + address,
		"--sink", "of.name=" + strings.Replace(named, "127.0.0.1", "localhost", 1), "--sink", "bus=" + broker.URL() +
			"?stream=SHOP&subject=shop.{workflow}",
		"--sink", "file=file://" + path, "--sink", "out=file:-"})
	root.SetErr(w)
	out, printed := io.Pipe()
	root.SetOut(printed)
	go func() {
		code := execute(ctx, root)
		_, _ = w.Close(), printed.Close()
		if code != flags.ExitOK {
			ended <- errors.New("it failed")
		}
		close(ended)
	}()
	lines := bufio.NewScanner(r)
	var url string
	for url == "" && lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "msg=serving url="); ok {
			url = strings.Fields(rest)[0]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // what else it says
	require.NotEqual(t, "", url, "it does not serve")
	code, body := place(t, url)
	require.Equal(t, 201, code, body)
	line := make([]byte, 64)
	_, err = io.ReadFull(out, line)
	assert.Truef(t, err == nil && strings.HasPrefix(string(line), `{"specversion":"1.0","id":"1-0"`), "printed %q, %v", line, err)
	go func() { _, _ = io.Copy(io.Discard, out) }() // the rest of the line
	for name, got := range map[string]<-chan string{"the address": ids, "the name": namedIDs} {
		await.Receive(t, "a delivery to "+name, got)
	}
	m, err := published.NextMsg(time.Minute)
	assert.Truef(t, err == nil && strings.Contains(string(m.Data), `"type":"order.place"`), "published %+v, %v", m, err)
	await.Eventually(t, "the file has an event", func() bool {
		events, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(events), "\n")
	})
	cancel()
	assert.NoError(t, <-ended)
}

// Of several sinks those begin with what happens from now on that are named.
func TestNamedSinksBeginNow(t *testing.T) {
	for names, want := range map[string][]bool{"": {false, false, false}, "b": {false, true, false}, "a,c": {true, false, true}} {
		list := []relay.Sink{{Name: "a"}, {Name: "b"}, {Name: "c"}}
		assert.NoError(t, beginNow(list, strings.FieldsFunc(names, func(r rune) bool { return r == ',' })))
		for i, s := range list {
			assert.Equalf(t, want[i], s.FromNow, "%q: sink %s begins now", names, s.Name)
		}
	}
}

// Two webhooks whose names differ in a way that an environment variable's does not
// would sign with each other's secrets.
func TestWebhookSecrets_Variables(t *testing.T) {
	t.Setenv("PAWL_SINK_A_B_SECRET", signature.NewSecret().Reveal())
	code, _, stderr := run(t.Context(), "serve", "--sink", "a-b=https://example.com/1", "--sink", "a.b=https://example.com/2")
	assert.Truef(t, code == flags.ExitUsage &&
		strings.Contains(stderr, "--sink a-b and a.b would have their secrets in one variable, PAWL_SINK_A_B_SECRET"),
		"exit %d, %s", code, stderr)
}
