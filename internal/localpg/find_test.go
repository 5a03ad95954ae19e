package localpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakePrograms puts programs into the folder that claim to be PostgreSQL of that version.
func fakePrograms(t *testing.T, dir, version string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, script := range map[string]string{
		"postgres": fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s'\n", version),
		"initdb":   "#!/bin/sh\nexit 1\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
}

// bareEnvironment hides the PostgreSQL of this machine, as far as the environment leads to it.
func bareEnvironment(t *testing.T) {
	t.Helper()
	t.Setenv(EnvBin, "")
	t.Setenv("PATH", t.TempDir())
}

func TestFind_Versions(t *testing.T) {
	bareEnvironment(t)
	root := t.TempDir()
	for folder, version := range map[string]string{"9.6": "9.6.24", "13": "13.1", "14": "14.2", "16": "16.9", "99": "99.1"} {
		fakePrograms(t, filepath.Join(root, folder, "bin"), version)
	}
	got, err := folders{filepath.Join(root, "*", "bin")}.find(t.Context())
	want := binaries{filepath.Join(root, "16", "bin"), "16.9", 16}
	assert.Truef(t, got == want && err == nil, "got %+v, %v; want %+v", got, err, want)
}

// An upgrade of the machine must not create an empty database instead of the one that is in use.
func TestFindKeepsToTheVersionOfTheData(t *testing.T) {
	bareEnvironment(t)
	root := t.TempDir()
	for _, major := range []string{"15", "18"} {
		fakePrograms(t, filepath.Join(root, major), major+".1")
	}
	where := folders{filepath.Join(root, "*")}
	for _, tt := range []struct {
		named string // PAWL_PG_BIN
		homes []string
		want  string
	}{
		{"", nil, "18.1"},
		{"", []string{"/pg/15"}, "15.1"},
		{"", []string{"/pg/18"}, "18.1"},
		{"", []string{"/pg/16"}, "data in /pg/16"},
		{"", []string{"/pg/15", "/pg/18"}, "data in /pg/15 and /pg/18"},
		{"15", []string{"/pg/15", "/pg/18"}, "15.1"},
		{"18", []string{"/pg/15"}, "data in /pg/15"},
	} {
		t.Setenv(EnvBin, "")
		if tt.named != "" {
			t.Setenv(EnvBin, filepath.Join(root, tt.named))
		}
		b, err := where.find(t.Context(), tt.homes...)
		got := b.version
		if err != nil {
			got = err.Error()
		}
		assert.Truef(t, strings.Contains(got, tt.want) && !errors.Is(err, ErrNotFound), "%+v: got %s", tt, got)
	}
}

func TestFindFollowsPATHBeforeTheUsualFolders(t *testing.T) {
	bareEnvironment(t)
	root := t.TempDir()
	fakePrograms(t, filepath.Join(root, "usual"), "18.3")
	fakePrograms(t, filepath.Join(root, "real"), "15.1")
	onPath := filepath.Join(root, "path")
	require.NoError(t, os.Mkdir(onPath, 0o755))
	require.NoError(t, os.Symlink(filepath.Join(root, "real", "postgres"), filepath.Join(onPath, "postgres")))
	t.Setenv("PATH", onPath)
	got, err := folders{filepath.Join(root, "usual")}.find(t.Context())
	assert.Truef(t, err == nil && got.version == "15.1", "through a link on PATH: got %+v, %v; want 15.1", got, err)
}

func TestFindWithNothingThereNamesTheWaysOut(t *testing.T) {
	bareEnvironment(t)
	_, err := folders{filepath.Join(t.TempDir(), "*")}.find(t.Context())
	require.ErrorIs(t, err, ErrNotFound, "want ErrNotFound")
	for _, way := range []string{"install PostgreSQL", EnvBin, "DATABASE_URL"} {
		assert.Containsf(t, err.Error(), way, "%q does not name", err)
	}
}

func TestFindLooksNowhereElseWhenAFolderIsNamed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvBin, dir)
	if _, _, err := Find(); err == nil || !strings.Contains(err.Error(), EnvBin) || errors.Is(err, ErrNotFound) {
		t.Errorf("an empty folder: %v, want an error that names %s", err, EnvBin)
	}
	fakePrograms(t, dir, "13.4")
	_, _, err := Find()
	assert.ErrorContains(t, err, "13.4", "an old version, want an error that names it")
	fakePrograms(t, dir, "17.5 (Homebrew)")
	got, version, err := Find()
	assert.Truef(t, got == dir && version == "17.5" && err == nil, "got %s, %s, %v; want %s, 17.5", got, version, err, dir)
}

func TestObtainTriesOneWayAfterTheOther(t *testing.T) {
	bareEnvironment(t)
	root := t.TempDir()
	find := func() (binaries, error) { return folders{filepath.Join(root, "*")}.find(t.Context()) }
	var tried []string
	attempt := func(name string, do func() error) func() error {
		return func() error { tried = append(tried, name); return do() }
	}
	broken := errors.New("no network")
	if _, err := obtain(find, attempt("fails", func() error { return broken })); !errors.Is(err, ErrNotFound) || !errors.Is(err, broken) {
		t.Errorf("nothing worked: %v, want ErrNotFound with the reason", err)
	}
	got, err := obtain(find,
		attempt("fails", func() error { return broken }),
		attempt("works", func() error { fakePrograms(t, filepath.Join(root, "18"), "18.1"); return nil }),
		attempt("needless", func() error { return nil }),
	)
	assert.Truef(t, err == nil && got.version == "18.1", "got %+v, %v; want 18.1", got, err)
	want := []string{"fails", "fails", "works"}
	assert.Truef(t, slices.Equal(tried, want), "tried %q, want %q", tried, want)
}

func TestInspectReadsVersion(t *testing.T) {
	for printed, want := range map[string]string{
		"15.18 (Debian 15.18-0+deb12u1)": "15.18 15",
		"18beta1":                        "18beta1 18",
		"":                               "error",
		"devel":                          "error",
		"99999999999999999999":           "error",
	} {
		dir := t.TempDir()
		fakePrograms(t, dir, printed)
		b, err := inspect(t.Context(), dir)
		got := fmt.Sprintf("%s %d", b.version, b.major)
		if err != nil {
			got = "error"
		}
		assert.Equalf(t, want, got, "%q (%v)", printed, err)
	}
}
