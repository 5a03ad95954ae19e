package metrics_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// program finds a program of Prometheus, and skips the test if it is not installed.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s found: install it (package prometheus), to test the dashboard and the alerts with it", name)
	}
	return path
}

// prometheusServer is a running Prometheus.
type prometheusServer struct{ url string }

// startPrometheus runs Prometheus with a configuration until the test ends.
func startPrometheus(t *testing.T, config string) *prometheusServer {
	t.Helper()
	path := program(t, "prometheus")
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	ctx, stop := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, path, "--config.file="+file, "--storage.tsdb.path="+dir+"/data", "--web.listen-address=127.0.0.1:0",
		"--log.level=info", "--log.format=logfmt")
	stderr, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	said, read := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(read)
		said <- address(stderr)
		_, _ = io.Copy(io.Discard, stderr)
	}()
	t.Cleanup(func() {
		stop()
		<-read
		_ = c.Wait() // says that it was killed
	})
	p := &prometheusServer{await.Receive(t, "Prometheus listens", said)}
	require.Truef(t, strings.HasPrefix(p.url, "http://127.0.0.1:"), "%s does not start; it says:\n%s", path, p.url)
	await.Eventually(t, "Prometheus is ready", func() bool {
		r, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return p
}

// address returns the address from the log, or the whole log if it has none.
func address(stderr io.Reader) string {
	var all strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if _, at, is := strings.Cut(lines.Text(), `msg="Listening on" address=`); is {
			return "http://" + strings.Fields(at)[0]
		}
		all.WriteString(lines.Text() + "\n")
	}
	return all.String()
}

// values returns the results of a query, without those that are not a number.
func (p *prometheusServer) values(t *testing.T, query string) (list []string) {
	t.Helper()
	r, err := http.Get(p.url + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	require.NoError(t, err)
	defer r.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []struct{ Value [2]any } }
	}
	require.NoError(t, json.NewDecoder(r.Body).Decode(&answer))
	require.Equal(t, "success", answer.Status, query, answer.Error)
	for _, s := range answer.Data.Result {
		if v := fmt.Sprint(s.Value[1]); v != "NaN" {
			list = append(list, v)
		}
	}
	return list
}
