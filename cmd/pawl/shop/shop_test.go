package shop

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
)

func TestMain(m *testing.M) { tables.Main(m) }

// serve runs the command serve until the test ends. It returns what it logged before it served, and where it serves.
func serve(t *testing.T, args ...string) (log, url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	root := Command()
	root.SetArgs(append([]string{"serve", "--address", "127.0.0.1:0", "--database", pgtest.URL(t)}, args...))
	r, w := io.Pipe()
	root.SetErr(w)
	ended := make(chan error, 1)
	go func() {
		ended <- root.ExecuteContext(ctx)
		_ = w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, r)
		assert.NoError(t, <-ended, "serve ended with")
	})
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "msg=serving url="); ok {
			go func() { _, _ = io.Copy(io.Discard, r) }() // what else it says
			return log, strings.Fields(rest)[0]
		}
		log += lines.Text() + "\n"
	}
	t.Fatalf("it does not serve:\n%s", log)
	return "", ""
}

// command sends a command and wants an answer with the status.
func command(t *testing.T, url, body string, status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	for name, value := range map[string]string{"Content-Type": "application/json", "Idempotency-Key": "k", "Prefer": "wait=60"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.Truef(t, err == nil && resp.StatusCode == status, "%s: %d %s, %v", url, resp.StatusCode, text, err)
}

// shopping places an order at a service and pays it.
func shopping(t *testing.T, url string) {
	t.Helper()
	command(t, url+"/v1/workflows/order/place", `{"customer":"c-1","cart":"k-9","total":4200,"currency":"EUR"}`, 201)
	command(t, url+"/v1/workflows/order/keys/c-1:k-9/pay", `{"method":"card"}`, 200)
}

func TestOrdersArePaidAtTheProviderThatIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name string
		args func(url string) []string
	}{
		{"by the flag", func(url string) []string { return []string{"--payments", url + "/"} }},
		{"by the environment", func(url string) []string {
			t.Setenv("PAWL_PAYMENTS", url)
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bank, err := StartProvider(t.Context())
			require.NoError(t, err)
			defer func() {
				assert.NoError(t, bank.Stop())
			}()
			log, url := serve(t, tt.args(bank.URL())...)
			shopping(t, url)
			assert.Truef(t, len(bank.Ledger()) == 1 && !strings.Contains(log, "payments"),
				"the provider has %v, and the log says\n%s", bank.Ledger(), log)
		})
	}
}

func TestShop_InProcessProvider(t *testing.T) {
	log, url := serve(t)
	shopping(t, url)
	_, bank, ok := strings.Cut(log, `msg="payments go to a provider in this process, which forgets them when it ends" url=`)
	require.Truef(t, ok, "the log says\n%s", log)
	resp, err := http.Get(strings.Fields(bank)[0] + "/ledger")
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	ledger, err := io.ReadAll(resp.Body)
	assert.Truef(t, err == nil && bytes.Contains(ledger, []byte(`"charges":1`)), "the ledger is %s, %v", ledger, err)
}

func TestProviderThatCannotBeIsAMistakeInTheCall(t *testing.T) {
	for _, url := range []string{"payments", "127.0.0.1:8090", "ftp://127.0.0.1", "http://", "http://bank/?a=b", "http://%zz"} {
		root := Command()
		root.SetArgs([]string{"serve", "--payments", url})
		var stderr bytes.Buffer
		root.SetErr(&stderr)
		code := cli.Execute(root)
		assert.Truef(t, code == 2 && strings.Contains(stderr.String(), "--payments: "), "%s: exit %d, %s", url, code, stderr.String())
	}
}

func TestHelpDoesNotShowThePasswordOfTheProvider(t *testing.T) {
	t.Setenv("PAWL_PAYMENTS", "http://me:sesame@127.0.0.1:8090")
	root := Command()
	root.SetArgs([]string{"serve", "--help"})
	var out bytes.Buffer
	root.SetOut(&out)
	if code := cli.Execute(root); code != 0 || !strings.Contains(out.String(), "--payments") || strings.Contains(out.String(), "sesame") {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}

func TestProviderIsGoneWhenItIsStopped(t *testing.T) {
	p, err := StartProvider(t.Context())
	require.NoError(t, err)
	charge := provider.Charge{Amount: 1, Currency: "EUR", Method: "card", Reference: "r"}
	c := provider.Client{URL: p.URL()}
	_, err = c.Charge(t.Context(), "k", charge)
	assert.NoError(t, err)
	for range 2 {
		assert.NoError(t, p.Stop())
	}
	_, err = c.Charge(t.Context(), "k", charge)
	assert.Truef(t, err != nil && !provider.IsFinal(err), "a provider that was stopped answers %v", err)
}
