//go:build linux

package pawl

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlhq/pawl/internal/await"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// EnvDist names the folder that "make dist" has filled.
const envDist = "PAWL_DIST"

// What is released needs nothing but itself: not a library, not an account, nothing that it could write to. So it runs in a
// root that has nothing else, as somebody who may write nowhere, which is what a container gives it.
func TestTheReleaseRunsAsNobodyInAnEmptyRoot(t *testing.T) {
	dist := os.Getenv(envDist)
	if dist == "" {
		t.Skipf("no %s: make dist tests what it has built", envDist)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root")
	}
	root := t.TempDir()
	for from, to := range map[string]string{"pawl_linux_" + runtime.GOARCH: "pawl", "": "auth.json"} {
		text := []byte(`{"keys": true}`)
		if from != "" {
			text = []byte(fileOf(t, filepath.Join(dist, from)))
		}
		if err := os.WriteFile(filepath.Join(root, to), text, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o555); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), "/pawl", args...)
		c.Dir, c.Env = "/", []string{"DATABASE_URL=" + pgtest.EmptyURL(t)}
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		return c
	}
	for command, want := range map[string]string{"version": "commit " + head(t), "migrate": "schema pawl is at version"} {
		if out, err := run(command).CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("pawl %s: %v\n%s", command, err, out)
		}
	}
	serve := run("serve", "--address", "127.0.0.1:0", "--auth", "/auth.json")
	stderr, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	for lines := bufio.NewScanner(stderr); url == "" && lines.Scan(); {
		if _, rest, is := strings.Cut(lines.Text(), "msg=serving url="); is {
			url = strings.Fields(rest)[0]
		}
	}
	if url == "" {
		t.Fatal("it does not serve")
	}
	await.Eventually(t, "it is ready", func() bool { return status(t, url+"/readyz") == http.StatusOK })
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, stderr)
	if err := serve.Wait(); err != nil {
		t.Error(err)
	}
}

func head(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func status(t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
