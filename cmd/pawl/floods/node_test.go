package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/apikey"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The limits of deploy/kubernetes/pawl.yaml.
const (
	memoryLimit = 512 << 20
	goLimit     = "460MiB"
)

// node is a running program, and how to reach it.
type node struct {
	url     string
	command *exec.Cmd
	ended   chan error // has why it ended
	keys    func(tenant, name, grants string) (text string)
}

// start builds the program without the race detector, which would take several times the memory, and runs it with the limits of the
// manifest: in a cgroup where this machine lets the test make one.
func start(t *testing.T) *node {
	t.Helper()
	dir, database := t.TempDir(), pgtest.URL(t)
	program := filepath.Join(dir, "floods")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	cert, key := certificate(t, dir)
	authFile := filepath.Join(dir, "auth.json")
	require.NoError(t, os.WriteFile(authFile, []byte(`{"keys":true}`), 0o600))
	n := &node{ended: make(chan error, 1)}
	n.command = exec.Command("/bin/sh", "-c", inCgroup(t)+`exec "$0" "$@"`, program, "serve", "--address", "127.0.0.1:0", "--auth", authFile,
		"--tls-cert", cert, "--tls-key", key, "--inbox", "hooks")
	n.command.Env = append(os.Environ(), "DATABASE_URL="+database, "GOMEMLIMIT="+goLimit,
		"PAWL_INBOX_HOOKS_SECRET="+signature.NewSecret().Reveal())
	output, err := n.command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, n.command.Start())
	said := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if !strings.Contains(lines.Text(), "a caller is refused") {
				t.Log(lines.Text())
			}
			if _, url, found := strings.Cut(lines.Text(), " url="); found {
				said <- strings.Fields(url)[0]
			}
		}
		n.ended <- n.command.Wait()
		close(said)
	}()
	t.Cleanup(func() {
		_ = n.command.Process.Kill()
		<-n.ended
	})
	url, serves := <-said
	require.True(t, serves, "the node does not serve")
	n.url = url
	n.keys = func(tenant, name, grants string) (text string) { return makeKey(t, database, tenant, name, grants) }
	return n
}

// inCgroup is the beginning of a shell script that puts its process into a cgroup of so much memory. It is empty where the test may not
// make one: the limit is then only checked.
func inCgroup(t *testing.T) string {
	name := "pawl-floods-" + strconv.Itoa(os.Getpid())
	for _, c := range []struct{ dir, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // version 1
		{"/sys/fs/cgroup", "memory.max"},                   // version 2
	} {
		group := filepath.Join(c.dir, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) })
		if os.WriteFile(filepath.Join(group, c.limit), []byte(strconv.Itoa(memoryLimit)), 0o644) == nil {
			return fmt.Sprintf("echo $$ > %s/cgroup.procs; ", group)
		}
	}
	t.Log("this machine lets the test make no cgroup: the memory is not limited, and its peak is checked")
	return ""
}

// peak is the most memory that the node ever had.
func (n *node) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.command.Process.Pid))
	if err != nil {
		t.Logf("the peak of the memory is not known: %v", err)
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kib << 10
}

func makeKey(t *testing.T, database, tenant, name, grants string) (text string) {
	t.Helper()
	k := apikey.Key{Tenant: tenant, Name: name, Actor: name, CreatedBy: "test", Roles: []string{"*"}}
	var err error
	k.Grants, err = auth.ParseGrants(grants)
	require.NoError(t, err)
	c := service.Config{Database: database, Schema: schema.Default, Log: slog.New(slog.DiscardHandler)}
	err = service.WithKeys(t.Context(), c, func(ctx context.Context, table *apikey.Table) (err error) {
		_, text, err = table.Create(ctx, k)
		return err
	})
	require.NoError(t, err)
	return text
}

// certificate writes the one that package httptest has for this machine, and returns its files.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// client is a connection of HTTP/2 to the node, with a credential.
type client struct {
	url, credential string
	http            http.Client
}

func (n *node) client(credential string) *client {
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxConnsPerHost: 1}
	return &client{url: n.url, credential: credential, http: http.Client{Transport: transport}}
}

// send sends a request, and returns its answer, of which the body is to be closed.
func (c *client) send(ctx context.Context, method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	if c.credential != "" {
		r.Header.Set("Authorization", "Bearer "+c.credential)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return c.http.Do(r)
}

// ask sends a request, and returns the status and the body of its answer.
func (c *client) ask(ctx context.Context, method, path string, body []byte, headers ...string) (int, []byte, error) {
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	response, err := c.send(ctx, method, path, in, headers...)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
