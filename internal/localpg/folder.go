package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// EnvHome names the environment variable that holds the folder of Pawl's own folders: those of the private servers, and
// of the binaries that were downloaded.
const EnvHome = "PAWL_HOME"

// UserDir names a folder among Pawl's own folders: in the one that PAWL_HOME names, or else, creating those above it where
// that takes no rights, /var/lib/pawl/name for root (whose home nobody else may enter, the server's account neither),
// pawl/name in the user's cache folder for others, or in a folder for temporary files when there is no home to write to.
func UserDir(name string) (string, error) {
	if home := os.Getenv(EnvHome); home != "" {
		if !filepath.IsAbs(home) { // a second server would begin in each folder that programs start in
			return "", fmt.Errorf("%s is %q: it has to be the absolute path of a folder", EnvHome, home)
		}
		dir := filepath.Join(home, name)
		// Rather an error for one that is mistyped than a new server there: the folders above it are not created.
		for _, folder := range []string{home, dir} {
			if err := makeFolder(folder); err != nil {
				return "", fmt.Errorf("%s is %q: %w", EnvHome, home, err)
			}
		}
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib/pawl", name), nil
	}
	if cache, err := os.UserCacheDir(); err == nil {
		if err := os.MkdirAll(filepath.Join(cache, "pawl"), 0o700); err == nil {
			return filepath.Join(cache, "pawl", name), nil
		}
	}
	base, err := tempBase()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, name), nil
}

// ThrowAwayDir is UserDir for a throw-away server: where the system has a file system in memory with room for it, and neither
// PAWL_HOME nor TMPDIR says otherwise, the folder is there. A database is hundreds of files, and one that is made for each test costs a
// disk's file system more than all that the test does with it.
func ThrowAwayDir(name string) (string, error) {
	if os.Getenv(EnvHome) != "" || os.Getenv(envTemp) != "" || memoryFolder() == "" {
		return UserDir(name)
	}
	base, err := throwAwayBase()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, name), nil
}

const envTemp = "TMPDIR" // where temporary files are wanted

// throwAwayBase is tempBase for what need not survive a crash of the machine.
func throwAwayBase() (string, error) {
	if memory := memoryFolder(); memory != "" && os.Getenv(envTemp) == "" {
		return ownFolder(memory)
	}
	return tempBase()
}

// tempBase returns this user's own folder among the temporary files.
func tempBase() (string, error) { return ownFolder(os.TempDir()) }

// ownFolder returns this user's own folder in one that is open to everybody, creating it when it is missing. A folder that
// somebody else put there in advance is refused.
func ownFolder(shared string) (string, error) {
	base := filepath.Join(shared, "pawl-"+strconv.Itoa(os.Geteuid()))
	if err := makeFolder(base); err != nil {
		return "", err
	}
	info, err := os.Lstat(base)
	if err != nil {
		return "", fmt.Errorf("look at the folder for temporary files: %w", err)
	}
	if uid, _ := ownerOf(info); !info.IsDir() || uid != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s is not a folder that only this user may write: remove it, or set TMPDIR", base)
	}
	return base, nil
}

// makeHome creates the folder and those above it, and returns its name free of symbolic links, since it is how programs
// recognise the server.
func makeHome(dir string) (string, error) {
	if err := makeFolders(dir); err != nil {
		return "", err
	}
	home, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("locate the folder %s: %w", dir, err)
	}
	return home, nil
}

// makeFolders creates the folder and those above it.
func makeFolders(dir string) error {
	err := makeFolder(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		if err = makeFolders(filepath.Dir(dir)); err == nil {
			err = makeFolder(dir)
		}
	}
	return err
}

// makeFolder creates the folder if it is missing. Whatever the umask, the server's account can pass through what it
// creates, and not list it.
func makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o711)
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // if what exists is not a folder, its first use says so
		return fmt.Errorf("create the folder: %w", err)
	}
	return nil
}

// makeRun creates the home of a throw-away server and locks it as in use. Folders whose owner is gone are removed first,
// or else the next time. Creating, sweeping and removing exclude each other by a lock, so a folder without an owner is
// always a left-over.
func makeRun(ctx context.Context, in func() (string, error)) (home string, users *fileLock, err error) {
	base, err := in()
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return "", nil, err
	}
	lock, err := lockFile(ctx, filepath.Join(base, "lock"))
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	homes, _ := filepath.Glob(filepath.Join(base, "run-*"))
	for _, home := range homes {
		_ = sweepRun(ctx, home)
	}
	if home, err = os.MkdirTemp(base, "run-"); err != nil {
		return "", nil, err
	}
	if err = os.Chmod(home, 0o711); err == nil {
		users, err = openLock(filepath.Join(home, "users"))
	}
	if err == nil {
		_, err = users.try(syscall.LOCK_EX) // a new file in a folder that is locked: nobody else can hold it
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(home))
	}
	return home, users, nil
}

// sweepRun removes the home of a throw-away server if its owner is gone, and ends the server where it survived.
func sweepRun(ctx context.Context, home string) (err error) {
	users, err := openLock(filepath.Join(home, "users"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, users.close()) }()
	if gone, err := users.try(syscall.LOCK_EX); err != nil || !gone {
		return err
	}
	if pm, ok := runningIn(filepath.Join(home, "data")); ok {
		if err := pm.end(ctx, syscall.SIGQUIT); err != nil {
			return err
		}
	}
	return os.RemoveAll(home)
}

// removeRun removes the home of a throw-away server.
func removeRun(ctx context.Context, home string) (err error) {
	lock, err := lockFile(ctx, filepath.Join(filepath.Dir(home), "lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	return os.RemoveAll(home)
}
