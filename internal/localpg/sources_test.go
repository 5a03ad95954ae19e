package localpg

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeApt puts an apt-get on PATH that notes its arguments and the cluster setting at that time.
func fakeApt(t *testing.T, config string, exit string) (notes string) {
	t.Helper()
	dir := t.TempDir()
	notes = filepath.Join(dir, "notes")
	script := "#!/bin/sh\necho \"$@\" >> " + notes + "\ncat " + config + "/*.conf >> " + notes + "\necho it went wrong\nexit " + exit + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return notes
}

func TestInstall_Apt(t *testing.T) {
	for exit, want := range map[string]string{"0": "", "100": "it went wrong"} {
		config := filepath.Join(t.TempDir(), "createcluster.d")
		notes := fakeApt(t, config, exit)
		err := install(t.Context(), config, t.Logf)
		if want != "" {
			assert.ErrorContains(t, err, want)
		} else {
			assert.NoError(t, err)
		}
		content, err := os.ReadFile(notes)
		require.NoError(t, err)
		assert.Regexp(t, "(?s)update.*install -y --no-install-recommends postgresql.*create_main_cluster = false", string(content))
		onlyEntry(t, config)
	}
}

func TestMayInstall(t *testing.T) {
	fakeApt(t, t.TempDir(), "0")
	t.Setenv(EnvInstall, "")
	assert.False(t, mayInstall())
	t.Setenv(EnvInstall, "1")
	assert.Equal(t, os.Geteuid() == 0, mayInstall())
	t.Setenv("PATH", t.TempDir())
	assert.False(t, mayInstall())
}

// repository serves an archive with small programs as every file of a Maven repository. The checksum it names is that
// of the archive with the suffix appended.
func repository(t *testing.T, suffix string) string {
	t.Helper()
	programs, err := os.ReadFile("testdata/programs.txz")
	require.NoError(t, err)
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres-any.txz")
	if err == nil {
		_, err = w.Write(programs)
	}
	require.NoError(t, errors.Join(err, z.Close()))
	sum := sha256.Sum256(append(bytes.Clone(jar.Bytes()), suffix...))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := jar.Bytes()
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			body = []byte(hex.EncodeToString(sum[:]))
		}
		_, err := w.Write(body)
		assert.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestDownload(t *testing.T) {
	bareEnvironment(t)
	dir := openFolder(t)
	t.Setenv("TMPDIR", t.TempDir()) // the library leaves its log there
	t.Setenv("PATH", "/usr/bin:/bin")
	require.NoError(t, download(t.Context(), dir, repository(t, ""), t.Logf))
	t.Setenv("PATH", t.TempDir())
	got, err := folders{filepath.Join(dir, "*", "bin")}.find(t.Context())
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "18.3.0", "bin"), got.dir)
	wantPassable(t, filepath.Dir(got.dir))
	onlyEntry(t, dir, "18.3.0")
}

func TestDownload_Failures(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	missing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(missing.Close)
	for url, want := range map[string]string{
		missing.URL:              "no version found",
		repository(t, "changed"): "checksum",
	} {
		dir := t.TempDir()
		err := download(t.Context(), dir, url, t.Logf)
		assert.ErrorContains(t, err, want, "want an error about")
		onlyEntry(t, dir)
	}
}

func onlyEntry(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	assert.Equalf(t, strings.Join(want, " "), strings.Join(got, " "), "%s holds %q, want %q", dir, got, want)
}
