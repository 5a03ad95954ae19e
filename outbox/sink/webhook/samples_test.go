package webhook_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
)

// samples are the receivers of docs/webhooks.md.
var samples = []struct {
	name, language, file string
	command              func(t *testing.T, path string) *exec.Cmd
}{
	{"Node", "js", "receiver.mjs", interpreter("node")},
	{"Python", "python", "receiver.py", interpreter("python3")},
	{"Go", "go", "main.go", func(t *testing.T, path string) *exec.Cmd {
		program := filepath.Join(filepath.Dir(path), "receiver")
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, path).CombinedOutput()
		require.NoError(t, err, out)
		return exec.Command(program)
	}},
}

func interpreter(name string) func(t *testing.T, path string) *exec.Cmd {
	return func(t *testing.T, path string) *exec.Cmd {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("there is no %s", name)
		}
		return exec.Command(found, path)
	}
}

// sample is a running receiver.
type sample struct {
	url     string
	printed <-chan string
	old     signature.Secret
	secret  signature.Secret
}

func startSample(t *testing.T, language, file string, command func(t *testing.T, path string) *exec.Cmd) *sample {
	t.Helper()
	text, err := os.ReadFile("../../../docs/webhooks.md")
	require.NoError(t, err)
	source := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindStringSubmatch(string(text))
	require.NotNilf(t, source, "docs/webhooks.md has no receiver in %s", language)
	path := filepath.Join(t.TempDir(), file)
	require.NoError(t, os.WriteFile(path, []byte(source[1]), 0o600))
	s := &sample{old: signature.NewSecret(), secret: signature.NewSecret()}
	c := command(t, path)
	c.Env = append(os.Environ(), "PORT=0", "WEBHOOK_SECRET="+s.secret.Reveal()+" "+s.old.Reveal())
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := make(chan string, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
		_ = c.Wait()
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	port, found := strings.CutPrefix(await.Receive(t, "the port", lines), "listening on port ")
	_, err = strconv.Atoi(port)
	require.True(t, err == nil && found, port)
	s.url, s.printed = "http://127.0.0.1:"+port+"/", lines
	return s
}

// orderPaid returns an event of an order.
func orderPaid(position int64, subject string) []transitions.Logged {
	e := transitions.Event{Tenant: "acme", Position: position, Type: "order.pay", Instance: uuid.New(), BusinessKey: subject,
		Payload: []byte(`{"total":4200,"note":"Zoë ✓"}`)}
	return []transitions.Logged{{Event: e, CloudEvent: e.AppendCloudEvent(nil)}}
}

// The receivers of the documentation accept each message of a sink once, and nothing else.
func TestSampleReceivers(t *testing.T) {
	for _, c := range samples {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startSample(t, c.language, c.file, c.command)
			deliver := func(e []transitions.Logged, change func(*webhook.Config)) *sink.Failure {
				t.Helper()
				config := webhook.Config{URL: s.url, Secrets: []signature.Secret{s.secret}, PlainHTTP: true, Private: loopback}
				change(&config)
				if failures := open(t, config).Deliver(t.Context(), e); failures != nil {
					return failures[0]
				}
				return nil
			}
			good := func(*webhook.Config) {}
			other := func(c *webhook.Config) { c.Secrets = []signature.Secret{signature.NewSecret()} }
			at := func(d time.Duration) func(*webhook.Config) {
				return func(c *webhook.Config) { c.Now = func() time.Time { return time.Now().Add(d) } }
			}
			both := func(c *webhook.Config) { c.Secrets = []signature.Secret{signature.NewSecret(), s.old} }

			first := orderPaid(7, "A-17")
			for name, refused := range map[string]func(*webhook.Config){"another secret": other, "too old": at(-10 * time.Minute),
				"in the future": at(10 * time.Minute)} {
				if f := deliver(first, refused); f == nil || f.Kind != sink.Unavailable || !strings.Contains(f.Message, "401 Unauthorized") {
					t.Errorf("%s: %v", name, f)
				}
			}
			for _, e := range [][]transitions.Logged{first, first, orderPaid(8, "A-18")} { // the second one is a repetition
				require.Nil(t, deliver(e, good))
			}
			if f := deliver(orderPaid(9, "A-19"), both); f != nil { // during a rotation
				t.Fatal(f)
			}
			for _, want := range []string{"A-17", "A-18", "A-19"} {
				assert.Equalf(t, "order.pay of "+want+": 4200", await.Receive(t, "what it prints", s.printed), "not %s", want)
			}
			broken := orderPaid(10, "A-20")
			broken[0].CloudEvent = []byte(`{"data":`)
			f := deliver(broken, good)
			assert.Truef(t, f != nil && f.Kind == sink.Temporary, "what cannot be processed: %v", f)
			large := orderPaid(11, "A-21")
			large[0].CloudEvent = []byte(strings.Repeat(" ", 5<<20))
			if f := deliver(large, good); f == nil || f.Kind != sink.Permanent && f.Kind != sink.Temporary { // may close the connection first
				t.Errorf("what is too large: %v", f)
			}
			s.refuses(t, http.MethodPost, "application/json", http.StatusUnsupportedMediaType)
		})
	}
}

// refuses sends a request that is not an event.
func (s *sample) refuses(t *testing.T, method, media string, want int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url, strings.NewReader("{}"))
	require.NoError(t, err)
	r.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	_, err = io.ReadAll(resp.Body)
	assert.Truef(t, err == nil && resp.StatusCode == want, "%s of %s: %s, %v", method, media, resp.Status, err)
}
