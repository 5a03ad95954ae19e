package localpg

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

func TestFind(t *testing.T) {
	root := t.TempDir()
	for folder, version := range map[string]string{"9.6": "9.6.24", "13": "13.1", "14": "14.2", "16": "16.9", "99": "99.1"} {
		fakePrograms(t, filepath.Join(root, "usual", folder), version)
	}
	fakePrograms(t, filepath.Join(root, "real"), "15.1")
	fakePrograms(t, filepath.Join(root, "named"), "17.5 (Homebrew)")
	onPath := filepath.Join(root, "path")
	require.NoError(t, os.Mkdir(onPath, 0o755))
	require.NoError(t, os.Symlink(filepath.Join(root, "real", "postgres"), filepath.Join(onPath, "postgres")))
	for name, tt := range map[string]struct {
		bin, path, usual string
		want             binaries
		err              []string
	}{
		"newest supported":          {usual: "usual/*", want: binaries{filepath.Join(root, "usual", "16"), "16.9", 16}},
		"link on PATH":              {path: onPath, usual: "usual/*", want: binaries{filepath.Join(root, "real"), "15.1", 15}},
		"PAWL_PG_BIN":               {bin: "named", path: onPath, usual: "usual/*", want: binaries{filepath.Join(root, "named"), "17.5", 17}},
		"PAWL_PG_BIN, empty folder": {bin: "none", usual: "usual/*", err: []string{EnvBin}},
		"PAWL_PG_BIN, old version":  {bin: "usual/13", usual: "usual/*", err: []string{EnvBin, "13.1"}},
		"nothing":                   {usual: "none/*", err: []string{"install PostgreSQL", EnvBin, "DATABASE_URL"}},
	} {
		t.Setenv(EnvBin, "")
		if tt.bin != "" {
			t.Setenv(EnvBin, filepath.Join(root, tt.bin))
		}
		t.Setenv("PATH", cmp.Or(tt.path, "/nowhere"))
		got, err := folders{filepath.Join(root, tt.usual)}.find(t.Context())
		for _, want := range tt.err {
			assert.ErrorContains(t, err, want, name)
		}
		assert.Equal(t, name == "nothing", errors.Is(err, ErrNotFound), name)
		if tt.err == nil {
			assert.NoError(t, err, name)
			assert.Equal(t, tt.want, got, name)
		}
	}
}

// An upgrade of the machine must not create an empty database instead of the one that is in use.
func TestFind_VersionOfData(t *testing.T) {
	bareEnvironment(t)
	root := t.TempDir()
	for _, major := range []string{"15", "18"} {
		fakePrograms(t, filepath.Join(root, major), major+".1")
	}
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
		b, err := folders{filepath.Join(root, "*")}.find(t.Context(), tt.homes...)
		assert.Contains(t, fmt.Sprint(b.version, err), tt.want, tt)
		assert.NotErrorIs(t, err, ErrNotFound, tt)
	}
}

func TestObtainTriesWaysInOrder(t *testing.T) {
	bareEnvironment(t)
	root := t.TempDir()
	find := func() (binaries, error) { return folders{filepath.Join(root, "*")}.find(t.Context()) }
	broken := errors.New("no network")
	fails := func() error { return broken }
	_, err := obtain(find, fails)
	assert.ErrorIs(t, err, ErrNotFound)
	assert.ErrorIs(t, err, broken)
	got, err := obtain(find, fails, func() error { fakePrograms(t, filepath.Join(root, "18"), "18.1"); return nil }, func() error {
		t.Error("a third way was tried")
		return nil
	})
	assert.NoError(t, err)
	assert.Equal(t, "18.1", got.version)
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
		assert.Equal(t, want, got, printed)
	}
}
