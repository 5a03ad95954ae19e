package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// EnvHome names the environment variable with the folder of private servers and downloaded binaries.
const EnvHome = "PAWL_HOME"

// UserDir returns the path of a folder among Pawl's own folders: in PAWL_HOME, or else /var/lib/pawl for root, or else pawl in
// the user's cache folder, or else a temporary folder of the user. It creates PAWL_HOME, but not the folders above it.
func UserDir(name string) (string, error) {
	if home := os.Getenv(EnvHome); home != "" {
		_, err := os.Stat(filepath.Dir(home)) // a missing one is probably mistyped
		if !filepath.IsAbs(home) {
			err = errors.New("it has to be the absolute path of a folder")
		}
		if err == nil {
			err = makeFolder(filepath.Join(home, name))
		}
		if err != nil {
			return "", fmt.Errorf("%s is %q: %w", EnvHome, home, err)
		}
		return filepath.Join(home, name), nil
	}
	if os.Geteuid() == 0 { // no other account may enter root's own home
		return filepath.Join("/var/lib/pawl", name), nil
	}
	if cache, err := os.UserCacheDir(); err == nil && os.MkdirAll(filepath.Join(cache, "pawl"), 0o700) == nil {
		return filepath.Join(cache, "pawl", name), nil
	}
	return ownFolder(os.TempDir(), name)
}

// ThrowAwayDir is like UserDir for data that need not survive a crash of the machine. It prefers a file system in memory, because a
// database is hundreds of files.
func ThrowAwayDir(name string) (string, error) {
	if base := throwAwayBase(); os.Getenv(EnvHome) == "" && base == inMemory {
		return ownFolder(base, name)
	}
	return UserDir(name)
}

const inMemory = "/dev/shm"

// throwAwayBase returns TMPDIR if it is set, or else a file system in memory with 4 GiB of space, or else the folder for temporary files.
func throwAwayBase() string {
	var about syscall.Statfs_t
	if runtime.GOOS == "linux" && os.Getenv("TMPDIR") == "" && syscall.Statfs(inMemory, &about) == nil &&
		uint64(about.Bavail)*uint64(about.Bsize) >= 4<<30 {
		return inMemory
	}
	return os.TempDir()
}

// ownFolder returns the path of a folder in this user's folder in one that every user may write to. It refuses a folder that another user
// may write to, too.
func ownFolder(shared, name string) (string, error) {
	base := filepath.Join(shared, "pawl-"+strconv.Itoa(os.Geteuid()))
	if err := makeFolder(base); err != nil {
		return "", err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s is not a folder that only this user may write: remove it, or set TMPDIR", base)
	}
	return filepath.Join(base, name), nil
}

// makeFolder creates the folder and those above it. Whatever the umask, the server's account may enter folders that it creates, and
// not list them.
func makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o711)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeFolder(filepath.Dir(dir)); err == nil {
			err = os.Mkdir(dir, 0o711)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // if it is not a folder, its first use fails
	}
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	return err
}

// makeRun creates the home of a private server. When remove is called or this program ends, a shell stops the server and removes the home.
func makeRun(base string) (home string, remove func() error, err error) {
	const script = `read -r _
		if read -r pid <"$1/data/postmaster.pid" && kill -QUIT "$pid"; then
			for _ in $(seq 1200); do [ -e "$1/data/postmaster.pid" ] && kill -0 "$pid" && sleep 0.05 || break; done
		fi
		rm -rf "$1"`
	if home, err = os.MkdirTemp(base, "pawl-run-"); err != nil {
		return "", nil, err
	}
	cmd := exec.Command("sh", "-c", script, "sh", home)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err = errors.Join(err, os.Chmod(home, 0o711)); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(home))
	}
	return home, func() error { return errors.Join(stdin.Close(), cmd.Wait()) }, nil
}
