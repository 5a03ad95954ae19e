package localpg

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestUserDirIsInTheNamedFolder(t *testing.T) {
	top := openFolder(t)
	t.Setenv(EnvHome, filepath.Join(top, "pawl"))
	s := startServer(t, Options{})
	if want := filepath.Join(top, "pawl", "postgres"); filepath.Dir(s.home) != want {
		t.Errorf("the private server's home is %s, want it in %s", s.home, want)
	}
	for _, home := range []string{"relative", "~/pawl"} {
		t.Setenv(EnvHome, home)
		if dir, err := UserDir("binaries"); err == nil || !strings.Contains(err.Error(), "PAWL_HOME is") {
			t.Errorf("%s: got %s, %v", home, dir, err)
		}
	}
}

// A mistyped PAWL_HOME is told, and nothing is created in its place.
func TestUserDirIsNotInAFolderThatCannotBe(t *testing.T) {
	top := t.TempDir()
	file, shut := filepath.Join(top, "file"), filepath.Join(top, "shut")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(shut, 0o500)); err != nil {
		t.Fatal(err)
	}
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
		if err == nil || !strings.Contains(err.Error(), "PAWL_HOME is") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", home, err, want)
		}
	}
	if found, err := os.ReadDir(top); err != nil || len(found) != 2 {
		t.Errorf("created: %v, %v", found, err)
	}
	t.Setenv(EnvHome, filepath.Join(top, "pawl"))
	if dir, err := UserDir("postgres"); err != nil || dir != filepath.Join(top, "pawl", "postgres") {
		t.Errorf("a folder that is to be created: %s, %v", dir, err)
	}
}

func TestUserDirIsAFolderOfThisUser(t *testing.T) {
	t.Setenv(EnvHome, "")
	dir, err := UserDir("postgres")
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if dir != "/var/lib/pawl/postgres" {
			t.Errorf("for root: %s, which must not be in root's home", dir)
		}
		return
	}
	cache, err := os.UserCacheDir()
	if want := filepath.Join(cache, "pawl", "postgres"); dir != want || err != nil {
		t.Errorf("got %s, %v; want %s", dir, err, want)
	}
	t.Setenv("HOME", "/nonexistent")
	t.Setenv("XDG_CACHE_HOME", "")
	dir, err = UserDir("postgres")
	if want := filepath.Join(os.TempDir(), "pawl-"+strconv.Itoa(os.Geteuid()), "postgres"); dir != want || err != nil {
		t.Errorf("without a home: %s, %v; want %s", dir, err, want)
	}
}

func TestTheFolderForTemporaryFilesMustBeOurs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	base, err := ownFolder(os.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ownFolder(os.TempDir(), ""); err != nil {
		t.Errorf("a second time: %v", err)
	}
	refused := func(why string) {
		t.Helper()
		if _, err := ownFolder(os.TempDir(), ""); err == nil || !strings.Contains(err.Error(), base) {
			t.Errorf("%s: %v, want a refusal that names %s", why, err, base)
		}
	}
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	refused("everybody may write to it")
	if err := os.Remove(base); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), base); err != nil {
		t.Fatal(err)
	}
	refused("it is a link")
	if os.Geteuid() == 0 {
		if err := os.Remove(base); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(base, 0o711); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(base, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		refused("somebody else made it")
	}
}

func TestNewFoldersCanBePassedThroughWhateverTheUmask(t *testing.T) {
	top := openFolder(t)
	old := syscall.Umask(0o077)
	err := makeFolder(filepath.Join(top, "a", "b"))
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/b"} {
		wantPassable(t, filepath.Join(top, name))
	}
}

func TestHomeIsFreeOfSymbolicLinks(t *testing.T) {
	top := openFolder(t)
	real, link := filepath.Join(top, "real"), filepath.Join(top, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(real, 0o711); err != nil {
		t.Fatal(err)
	}
	s, err := newServer(link, nil)
	if err != nil || s.home != real {
		t.Errorf("got %s, %v; want %s", s.home, err, real)
	}
}

func TestAsRootTheDataFoldersOwnerRunsTheServer(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		if got, err := serverAccount(dir); got != nil || err != nil {
			t.Errorf("a normal user: %+v, %v; want to run it as ourselves", got, err)
		}
		return
	}
	if got, err := serverAccount(filepath.Join(dir, "missing")); err != nil || got == nil || got.Uid == 0 {
		t.Errorf("no data folder yet: %+v, %v; want an unprivileged user", got, err)
	}
	if err := os.Chown(dir, 65534, 65533); err != nil {
		t.Fatal(err)
	}
	if got, err := serverAccount(dir); err != nil || got.Uid != 65534 || got.Gid != 65533 {
		t.Errorf("a data folder of 65534:65533: %+v, %v", got, err)
	}
}

// wantPassable checks that every user may enter the folder.
func wantPassable(t *testing.T, dir string) {
	t.Helper()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o001 == 0 {
		t.Errorf("%s: %v, %v", dir, info, err)
	}
}
