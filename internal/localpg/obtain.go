package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// EnvInstall names the environment variable that allows root to install PostgreSQL from the system's packages.
const EnvInstall = "PAWL_PG_INSTALL"

// findOrObtain finds the binaries, or else installs the package if that is allowed, or else downloads them. Programs that start at the
// same moment do this one after the other.
func findOrObtain(ctx context.Context, homes []string, log logger) (b binaries, err error) {
	if b, err = usualFolders().find(ctx, homes...); !errors.Is(err, ErrNotFound) {
		return b, err
	}
	var lock fileLock
	dir, failed := UserDir("binaries")
	if failed == nil {
		lock, failed = lockFile(ctx, filepath.Join(dir, "lock"), syscall.LOCK_EX)
	}
	if failed != nil {
		return b, errors.Join(err, failed)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	find := func() (binaries, error) { return usualFolders().find(ctx, homes...) }
	download := func() error { return download(ctx, dir, "", log) }
	install := func() error { return install(ctx, "/etc/postgresql-common/createcluster.d", log) }
	if mayInstall() {
		return obtain(find, install, download)
	}
	return obtain(find, download)
}

// obtain tries one way after the other until find succeeds.
func obtain(find func() (binaries, error), ways ...func() error) (b binaries, err error) {
	var failures error
	for _, way := range ways {
		if b, err = find(); !errors.Is(err, ErrNotFound) { // another program may have been quicker
			return b, err
		}
		failures = errors.Join(failures, way())
	}
	if b, err = find(); err != nil {
		err = errors.Join(err, failures)
	}
	return b, err
}

func mayInstall() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0 && os.Getenv(EnvInstall) != ""
}

// install installs the package of Debian, Ubuntu and their relatives. It keeps the package from starting a server of its own, by a file
// in the folder that pg_createcluster reads, and removes that file afterwards.
func install(ctx context.Context, clusterConfig string, log logger) (err error) {
	log("no PostgreSQL here: installing the package postgresql with apt-get")
	path := filepath.Join(clusterConfig, "pawl.conf")
	err = errors.Join(os.MkdirAll(clusterConfig, 0o755), os.WriteFile(path, []byte("create_main_cluster = false\n"), 0o644))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	const script = "apt-get $0 update; exec apt-get $0 install -y --no-install-recommends postgresql"
	cmd := exec.CommandContext(ctx, "sh", "-c", script, "-oDPkg::Lock::Timeout=120")
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute // to leave the packages in order
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get: %w; it says:\n%s", err, lastPart(out))
	}
	return nil
}

// downloadVersion is the newest version that Pawl supports and the library knows.
const downloadVersion = embedded.V18

// download puts the binaries that the embedded-postgres project builds for Linux and macOS into dir/version/bin. The library has no call
// for that alone: its Start also runs a server, which it cannot do as root. So it gets a data folder that has nothing but a version,
// and the server's start always fails.
func download(ctx context.Context, dir, repository string, log logger) (err error) {
	if ctx.Err() != nil { // the library takes no context
		return context.Cause(ctx)
	}
	log("no PostgreSQL here: downloading version %s", downloadVersion)
	temp, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	target, data := filepath.Join(temp, "postgres"), filepath.Join(temp, "data")
	err = errors.Join(os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(downloadVersion), 0o600))
	if err != nil {
		return err
	}
	config := embedded.DefaultConfig().Version(downloadVersion).CachePath(temp).RuntimePath(filepath.Join(temp, "run")).
		BinariesPath(target).DataPath(data).Port(0).Logger(io.Discard)
	if repository != "" {
		config = config.BinaryRepositoryURL(repository)
	}
	failed := embedded.NewDatabase(config).Start()
	if _, err := inspect(ctx, filepath.Join(target, "bin")); err != nil {
		return fmt.Errorf("download PostgreSQL %s: %w", downloadVersion, errors.Join(failed, err))
	}
	final := filepath.Join(dir, string(downloadVersion)) // an unusable one, if it exists
	return errors.Join(os.RemoveAll(final), os.Chmod(target, 0o755), os.Rename(target, final))
}
