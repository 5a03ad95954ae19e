package localpg

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUserDir_PAWL_HOME(t *testing.T) {
	top := openFolder(t)
	t.Setenv(EnvHome, filepath.Join(top, "pawl"))
	s := startServer(t, Options{})
	assert.Equal(t, filepath.Join(top, "pawl", "postgres"), filepath.Dir(s.home))
	for _, home := range []string{"relative", "~/pawl"} {
		t.Setenv(EnvHome, home)
		dir, err := UserDir("binaries")
		assert.ErrorContainsf(t, err, "PAWL_HOME is", "%s: got %s", home, dir)
	}
}

// A mistyped PAWL_HOME is an error and creates nothing.
func TestUserDir_InvalidHome(t *testing.T) {
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
		assert.ErrorContains(t, err, "PAWL_HOME is", home)
		assert.ErrorContains(t, err, want, home)
	}
	found, err := os.ReadDir(top)
	assert.NoError(t, err)
	assert.Len(t, found, 2)
	t.Setenv(EnvHome, filepath.Join(top, "pawl"))
	dir, err := UserDir("postgres")
	assert.NoError(t, err)
	assert.Equal(t, filepath.Join(top, "pawl", "postgres"), dir)
}

func TestUserDir_Default(t *testing.T) {
	t.Setenv(EnvHome, "")
	dir, err := UserDir("postgres")
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		assert.Equal(t, "/var/lib/pawl/postgres", dir) // outside of root's home
		return
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(cache, "pawl", "postgres"), dir)
	t.Setenv("HOME", "/nonexistent")
	t.Setenv("XDG_CACHE_HOME", "")
	dir, err = UserDir("postgres")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(os.TempDir(), "pawl-"+strconv.Itoa(os.Geteuid()), "postgres"), dir)
}

func TestOwnFolderRejectsForeignFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	base, err := ownFolder(os.TempDir(), "")
	require.NoError(t, err)
	_, err = ownFolder(os.TempDir(), "")
	assert.NoError(t, err, "a second time")
	refused := func(why string) {
		t.Helper()
		_, err := ownFolder(os.TempDir(), "")
		assert.ErrorContains(t, err, base, why)
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

func TestHomeHasNoSymbolicLinks(t *testing.T) {
	top := openFolder(t)
	real, link := filepath.Join(top, "real"), filepath.Join(top, "link")
	require.NoError(t, os.Symlink(real, link))
	require.NoError(t, os.Mkdir(real, 0o711))
	s, err := newServer(link, nil)
	require.NoError(t, err)
	assert.Equal(t, real, s.home)
}

func TestServerAccount(t *testing.T) {
	dir := t.TempDir()
	got, err := serverAccount(filepath.Join(dir, "missing"))
	require.NoError(t, err)
	if os.Geteuid() != 0 {
		assert.Nil(t, got)
		return
	}
	assert.NotZero(t, got.Uid)
	require.NoError(t, os.Chown(dir, 65534, 65533))
	got, err = serverAccount(dir)
	require.NoError(t, err)
	assert.Equal(t, &account{Uid: 65534, Gid: 65533}, got)
}

// wantPassable checks that every user may enter the folder.
func wantPassable(t *testing.T, dir string) {
	t.Helper()
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode().Perm()&0o001, dir)
}
