//go:build linux

package deploy

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// EnvDist names the folder that "make dist" has filled.
const envDist = "PAWL_DIST"

// released is the folder that "make dist" has filled, for a test that changes the root of a process.
func released(t *testing.T) (dist string) {
	t.Helper()
	if dist = os.Getenv(envDist); dist == "" {
		t.Skipf("no %s: make dist tests what it has built", envDist)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root")
	}
	return dist
}

// inRoot is a call of a program in a root of its own, as an account that may write nowhere there: what a container gives it.
func inRoot(t *testing.T, root, database, program string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir, c.Env = "/", []string{"DATABASE_URL=" + database}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	return c
}

// What is released needs nothing but itself: not a library, not an account, nothing that it could write to. So it runs in a
// root that has nothing else.
func TestTheReleaseRunsAsNobodyInAnEmptyRoot(t *testing.T) {
	dist, root, database := released(t), t.TempDir(), pgtest.EmptyURL(t)
	put(t, filepath.Join(root, "pawl"), []byte(fileOf(t, filepath.Join(dist, "pawl_linux_"+runtime.GOARCH))))
	put(t, filepath.Join(root, "auth.json"), []byte(`{"keys": true}`))
	require.NoError(t, os.Chmod(root, 0o555))
	for command, want := range map[string]string{"version": "commit " + head(t), "migrate": "schema pawl is at version"} {
		out, err := inRoot(t, root, database, "/pawl", command).CombinedOutput()
		assert.Truef(t, err == nil && strings.Contains(string(out), want), "pawl %s: %v\n%s", command, err, out)
	}
	serves(t, inRoot(t, root, database, "/pawl", "serve", "--address", "127.0.0.1:0", "--auth", "/auth.json"), http.DefaultClient)
}

// put writes a file that everybody can read and run.
func put(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, text, 0o555))
}

// serves starts a node, until it is ready, and ends it.
func serves(t *testing.T, node *exec.Cmd, client *http.Client) {
	t.Helper()
	stderr, err := node.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	url, log := "", ""
	for lines := bufio.NewScanner(stderr); url == "" && lines.Scan(); log += lines.Text() + "\n" {
		if _, rest, is := strings.Cut(lines.Text(), "msg=serving url="); is {
			url = strings.Fields(rest)[0]
		}
	}
	require.NotEqualf(t, "", url, "it does not serve:\n%s", log)
	await.Eventually(t, "it is ready", func() bool { return status(t, client, url+"/readyz") == http.StatusOK })
	assert.NoError(t, node.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, stderr)
	assert.NoError(t, node.Wait())
}

// The file of the container makes an image, here on an empty base, which no registry has to have. It is started as the image says,
// as the account that it says, with the configuration and the certificate where the command looks for them.
func TestTheImageOfTheReleaseServes(t *testing.T) {
	dist := released(t)
	image, root := imageOf(t, dist)
	assert.Equal(t, "65532:65532", image.User, "it runs as")
	other := httptest.NewTLSServer(http.NotFoundHandler())
	defer other.Close()
	put(t, filepath.Join(root, "etc/pawl/auth.json"), []byte(`{"keys": true}`))
	certificate := other.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	put(t, filepath.Join(root, "etc/pawl/tls/tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))
	put(t, filepath.Join(root, "etc/pawl/tls/tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	args := slices.Concat(image.Entrypoint, image.Cmd)
	if i := slices.Index(args, "0.0.0.0:8443"); i < 0 {
		t.Errorf("it is started with %q", args)
	} else {
		args[i] = "127.0.0.1:0"
	}
	serves(t, inRoot(t, root, pgtest.EmptyURL(t), args[0], args[1:]...), other.Client())
}

// started says how a container is started of an image.
type started struct {
	User            string
	Entrypoint, Cmd []string
}

// imageOf builds the image, and puts it together as a container would have it.
func imageOf(t *testing.T, dist string) (image started, root string) {
	t.Helper()
	program, err := exec.LookPath("buildah")
	if err != nil {
		t.Skip("no buildah found: install it (package buildah) to build the image")
	}
	dir := t.TempDir()
	buildah := func(args ...string) string {
		args = slices.Concat([]string{"--storage-driver", "vfs", "--root", dir + "/storage", "--runroot", dir + "/run"}, args)
		c := exec.CommandContext(t.Context(), program, args...)
		var complaints strings.Builder
		c.Stderr = &complaints
		out, err := c.Output()
		require.NoErrorf(t, err, "buildah %q \n%s", args, complaints.String())
		return strings.TrimSpace(string(out))
	}
	buildah("build", "--isolation", "chroot", "--build-arg", "BASE=scratch", "--build-arg", "TARGETARCH="+runtime.GOARCH,
		"--file", containerfile, "--tag", "pawl", dist)
	var inspected struct{ OCIv1 struct{ Config started } }
	require.NoError(t, json.Unmarshal([]byte(buildah("inspect", "--type", "image", "pawl")), &inspected))
	container := buildah("from", "pawl")
	return inspected.OCIv1.Config, buildah("mount", container)
}

func head(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func status(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	return answer.StatusCode
}
