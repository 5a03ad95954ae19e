package localpg

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUserDirIsInTheNamedFolder(t *testing.T) {
	top := openFolder(t)
	t.Setenv(EnvHome, filepath.Join(top, "pawl"))
	s := startServer(t, Options{})
	assert.Equalf(t, filepath.Join(top, "pawl", "postgres"), filepath.Dir(s.home),
		"the private server's home is %s, want it in", s.home)
	for _, home := range []string{"relative", "~/pawl"} {
		t.Setenv(EnvHome, home)
		dir, err := UserDir("binaries")
		assert.ErrorContainsf(t, err, "PAWL_HOME is", "%s: got %s", home, dir)
	}
}

// A mistyped PAWL_HOME is told, and nothing is created in its place.
func TestUserDirIsNotInAFolderThatCannotBe(t *testing.T) {
	top := t.TempDir()
	file, shut := filepath.Join(top, "file"), filepath.Join(top, "shut")
	require.NoError(t, errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(shut, 0o500)))
	cases := map[string]string{
		filepath.Join(top, "srv", "pawl"): "no such file",
		filepath.Join(file, "pawl"):       "not a directory",
		file:                              "not a directory",
	}
	if os.Geteuid() != 0 { // who may write everywhere
		cases[shut], cases[filepath.Join(shut, "pawl")] = "permission denied", "permission denied"
	}
	for home, want := range cases {
		t.Setenv(EnvHome, home)
		_, err := Start(t.Context(), Options{})
		assert.Truef(t, err != nil && strings.Contains(err.Error(), "PAWL_HOME is") && strings.Contains(err.Error(), want),
			"%s: %v, want %s", home, err, want)
	}
	found, err := os.ReadDir(top)
	assert.Truef(t, err == nil && len(found) == 2, "created: %v, %v", found, err)
	t.Setenv(EnvHome, filepath.Join(top, "pawl"))
	dir, err := UserDir("postgres")
	assert.Truef(t, err == nil && dir == filepath.Join(top, "pawl", "postgres"), "a folder that is to be created: %s, %v", dir, err)
}

func TestUserDirIsAFolderOfThisUser(t *testing.T) {
	t.Setenv(EnvHome, "")
	dir, err := UserDir("postgres")
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		assert.Equal(t, "/var/lib/pawl/postgres", dir, "for root, which must not be in root's home")
		return
	}
	cache, err := os.UserCacheDir()
	want := filepath.Join(cache, "pawl", "postgres")
	assert.Truef(t, dir == want && err == nil, "got %s, %v; want %s", dir, err, want)
	t.Setenv("HOME", "/nonexistent")
	t.Setenv("XDG_CACHE_HOME", "")
	dir, err = UserDir("postgres")
	want = filepath.Join(os.TempDir(), "pawl-"+strconv.Itoa(os.Geteuid()), "postgres")
	assert.Truef(t, dir == want && err == nil, "without a home: %s, %v; want %s", dir, err, want)
}

func TestTheFolderForTemporaryFilesMustBeOurs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	base, err := ownFolder(os.TempDir(), "")
	require.NoError(t, err)
	_, err = ownFolder(os.TempDir(), "")
	assert.NoError(t, err, "a second time")
	refused := func(why string) {
		t.Helper()
		if _, err := ownFolder(os.TempDir(), ""); err == nil || !strings.Contains(err.Error(), base) {
			t.Errorf("%s: %v, want a refusal that names %s", why, err, base)
		}
	}
	require.NoError(t, os.Chmod(base, 0o777))
	refused("everybody may write to it")
	require.NoError(t, os.Remove(base))
	require.NoError(t, os.Symlink(t.TempDir(), base))
	refused("it is a link")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Remove(base))
		require.NoError(t, os.Mkdir(base, 0o711))
		require.NoError(t, os.Chown(base, 65534, 65534))
		refused("somebody else made it")
	}
}

func TestFolders_Umask(t *testing.T) {
	top := openFolder(t)
	old := syscall.Umask(0o077)
	err := makeFolder(filepath.Join(top, "a", "b"))
	syscall.Umask(old)
	require.NoError(t, err)
	for _, name := range []string{"a", "a/b"} {
		wantPassable(t, filepath.Join(top, name))
	}
}

func TestHomeIsFreeOfSymbolicLinks(t *testing.T) {
	top := openFolder(t)
	real, link := filepath.Join(top, "real"), filepath.Join(top, "link")
	require.NoError(t, os.Symlink(real, link))
	require.NoError(t, os.Mkdir(real, 0o711))
	s, err := newServer(link, nil)
	assert.Truef(t, err == nil && s.home == real, "got %s, %v; want %s", s.home, err, real)
}

func TestAsRootTheDataFoldersOwnerRunsTheServer(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		got, err := serverAccount(dir)
		assert.Truef(t, got == nil && err == nil, "a normal user: %+v, %v; want to run it as ourselves", got, err)
		return
	}
	got, err := serverAccount(filepath.Join(dir, "missing"))
	assert.Truef(t, err == nil && got != nil && got.Uid != 0, "no data folder yet: %+v, %v; want an unprivileged user", got, err)
	require.NoError(t, os.Chown(dir, 65534, 65533))
	got, err = serverAccount(dir)
	assert.Truef(t, err == nil && got.Uid == 65534 && got.Gid == 65533, "a data folder of 65534:65533: %+v, %v", got, err)
}

// wantPassable checks that every user may enter the folder.
func wantPassable(t *testing.T, dir string) {
	t.Helper()
	info, err := os.Stat(dir)
	assert.Truef(t, err == nil && info.Mode().Perm()&0o001 != 0, "%s: %v, %v", dir, info, err)
}
