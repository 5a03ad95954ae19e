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
)

// fakeApt puts an apt-get on PATH that notes its arguments and the cluster setting at that time.
func fakeApt(t *testing.T, config string, exit string) (notes string) {
	t.Helper()
	dir := t.TempDir()
	notes = filepath.Join(dir, "notes")
	script := "#!/bin/sh\necho \"$@\" >> " + notes + "\ncat " + config + "/*.conf >> " + notes + "\necho it went wrong\nexit " + exit + "\n"
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return notes
}

func TestAptInstallsWithoutCreatingACluster(t *testing.T) {
	config := filepath.Join(t.TempDir(), "createcluster.d")
	notes := fakeApt(t, config, "0")
	if err := install(t.Context(), config, t.Logf); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	_, install, updated := strings.Cut(string(content), "update")
	if !updated || !strings.Contains(install, "install -y --no-install-recommends postgresql") ||
		!strings.Contains(install, "create_main_cluster = false") {
		t.Errorf("apt-get was called so, with this setting:\n%s", content)
	}
	left, err := filepath.Glob(filepath.Join(config, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the setting stays behind: %v %v", left, err)
	}
}

func TestAptReportsWhatWentWrong(t *testing.T) {
	config := filepath.Join(t.TempDir(), "createcluster.d")
	fakeApt(t, config, "100")
	err := install(t.Context(), config, t.Logf)
	if err == nil || !strings.Contains(err.Error(), "it went wrong") {
		t.Errorf("got %v, want what apt-get says", err)
	}
	if left, err := filepath.Glob(filepath.Join(config, "*")); err != nil || len(left) > 0 {
		t.Errorf("the setting stays behind: %v %v", left, err)
	}
}

func TestAptIsForRootOnlyAndForWhoAsks(t *testing.T) {
	fakeApt(t, t.TempDir(), "0")
	t.Setenv(EnvInstall, "")
	if mayInstall() {
		t.Error("usable though nobody has asked for it")
	}
	t.Setenv(EnvInstall, "1")
	if got, want := mayInstall(), os.Geteuid() == 0; got != want {
		t.Errorf("usable with apt-get there: %v, want %v", got, want)
	}
	t.Setenv("PATH", t.TempDir())
	if mayInstall() {
		t.Error("usable without apt-get")
	}
}

// repository serves an archive with small programs as every file of a Maven repository. The checksum it names is that
// of the archive with the suffix appended.
func repository(t *testing.T, suffix string) string {
	t.Helper()
	programs, err := os.ReadFile("testdata/programs.txz")
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres-any.txz")
	if err == nil {
		_, err = w.Write(programs)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(append(bytes.Clone(jar.Bytes()), suffix...))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := jar.Bytes()
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			body = []byte(hex.EncodeToString(sum[:]))
		}
		if _, err := w.Write(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestDownloadPutsWorkingProgramsInPlace(t *testing.T) {
	bareEnvironment(t)
	dir := openFolder(t)
	t.Setenv("TMPDIR", t.TempDir()) // the library leaves its log there
	t.Setenv("PATH", "/usr/bin:/bin")
	if err := download(t.Context(), dir, repository(t, ""), t.Logf); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	got, err := folders{filepath.Join(dir, "*", "bin")}.find(t.Context())
	if want := filepath.Join(dir, "18.3.0", "bin"); got.dir != want || err != nil {
		t.Errorf("got %+v, %v; want %s", got, err, want)
	}
	wantPassable(t, filepath.Dir(got.dir))
	onlyEntry(t, dir, "18.3.0")
}

func TestDownloadThatFailsLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	missing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(missing.Close)
	for url, want := range map[string]string{
		missing.URL:              "no version found",
		repository(t, "changed"): "checksum",
	} {
		dir := t.TempDir()
		err := download(t.Context(), dir, url, t.Logf)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
		onlyEntry(t, dir)
	}
}

func onlyEntry(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}
