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
		return dir, checkHome(home, dir)
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

// checkHome refuses a PAWL_HOME in which dir is not and cannot be created: rather one that is mistyped than a new server
// there. Only its own folder is created, not those above it.
func checkHome(home, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	for _, into := range []string{home, filepath.Dir(home)} {
		info, err := os.Stat(into)
		switch {
		case errors.Is(err, fs.ErrNotExist) && into == home:
			continue
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is %q: the folder %s, in which to create it, does not exist", EnvHome, home, into)
		case err != nil:
			return fmt.Errorf("%s is %q: %w", EnvHome, home, err)
		case !info.IsDir():
			return fmt.Errorf("%s is %q: %s is not a folder", EnvHome, home, into)
		case syscall.Access(into, writable) != nil:
			return fmt.Errorf("%s is %q: this user may not write to %s", EnvHome, home, into)
		}
		return nil
	}
	return nil
}

// writable asks access(2) for the rights to create something in a folder: W_OK and X_OK.
const writable = 2 | 1

// tempBase returns this user's own folder among the temporary files, creating it when it is missing. That place is
// open to everybody, so a folder that somebody else put there in advance is refused.
func tempBase() (string, error) {
	base := filepath.Join(os.TempDir(), "pawl-"+strconv.Itoa(os.Geteuid()))
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
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("locate the folder %s: %w", dir, err)
	}
	if err := makeFolder(abs); err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", fmt.Errorf("locate the folder %s: %w", dir, err)
	}
	return abs, nil
}

// makeFolder creates the folder, and those above it, where they are missing. Whatever the umask, the server's account can
// pass through what it creates, and not list it.
func makeFolder(dir string) error {
	err := os.Mkdir(dir, 0o711)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		if err := makeFolder(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o711)
	}
	switch {
	case err == nil:
		err = os.Chmod(dir, 0o711)
	case errors.Is(err, fs.ErrExist):
		err = nil // if it is not a folder, its first use says so
	}
	if err != nil {
		return fmt.Errorf("create the folder %s: %w", dir, err)
	}
	return nil
}

// makeRun creates the home of a throw-away server and locks it as in use. Folders whose owner is gone are removed first.
// Creating, sweeping and removing exclude each other by a lock, so a folder without an owner is always a left-over.
func makeRun(ctx context.Context, log logger) (home string, users *fileLock, err error) {
	base, err := tempBase()
	if err != nil {
		return "", nil, err
	}
	lock, err := lockFile(ctx, filepath.Join(base, "lock"))
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	if err := sweepRuns(ctx, base); err != nil {
		log("left-over PostgreSQL folders in %s: %v", base, err)
	}
	dir, err := os.MkdirTemp(base, "run-")
	if err != nil {
		return "", nil, fmt.Errorf("create the PostgreSQL folder: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	if home, err = makeHome(dir); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	if users, err = openLock(filepath.Join(home, "users")); err == nil {
		_, err = users.try(syscall.LOCK_EX) // a new file in a folder that is locked: nobody else can hold it
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return home, users, nil
}

// sweepRuns removes the homes of throw-away servers whose owner is gone, and ends such a server where it survived.
func sweepRuns(ctx context.Context, base string) error {
	homes, err := filepath.Glob(filepath.Join(base, "run-*"))
	if err != nil {
		return fmt.Errorf("list %s: %w", base, err)
	}
	var errs []error
	for _, home := range homes {
		if home, err = filepath.EvalSymlinks(home); err == nil {
			err = sweepRun(ctx, home)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

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
