package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// The major versions of PostgreSQL that Pawl supports.
const (
	oldestMajor = 14
	newestMajor = 18
)

// EnvBin names the environment variable with the folder of the PostgreSQL binaries to use, instead of all others.
const EnvBin = "PAWL_PG_BIN"

// ErrNotFound reports that this machine has no usable PostgreSQL binaries.
var ErrNotFound = fmt.Errorf("no PostgreSQL %d to %d found: install PostgreSQL (package postgresql), or set %s to the "+
	"folder that holds the programs postgres and initdb, or set DATABASE_URL to a server that runs already",
	oldestMajor, newestMajor, EnvBin)

// binaries is a folder with the programs postgres and initdb, and their version.
type binaries struct {
	dir     string
	version string // as PostgreSQL prints it: 15.18, 18beta1
	major   int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// home returns the folder of a server of this version.
func (b binaries) home(dir string) string { return filepath.Join(dir, strconv.Itoa(b.major)) }

// Find returns the folder of PostgreSQL binaries and their version, such as "15.18": that in PAWL_PG_BIN, or else that of postgres on PATH,
// or else the newest of packages and downloads. It installs nothing. Error: ErrNotFound.
func Find() (binDir, version string, err error) {
	b, err := usualFolders().find(context.Background())
	return b.dir, b.version, err
}

// folders are patterns of folders to look for binaries in, after those that the environment names.
type folders []string

func usualFolders() folders {
	patterns := folders{
		"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
		"/usr/pgsql-*/bin",          // PostgreSQL's own packages for Red Hat and SUSE
		"/usr/libexec/postgresql*",  // Alpine
		"/usr/local/pgsql/bin",      // built from source
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
		"/Library/PostgreSQL/*/bin",
	}
	if dir, err := UserDir("binaries"); err == nil {
		patterns = append(patterns, filepath.Join(dir, "*", "bin"))
	}
	return patterns
}

// find returns the binaries to use. If homes with data are given, they are those of the data's version.
func (f folders) find(ctx context.Context, homes ...string) (binaries, error) {
	found, err := f.usable(ctx)
	if err != nil || len(homes) == 0 {
		return append(found, binaries{})[0], err
	}
	for _, b := range found {
		if (len(homes) == 1 || os.Getenv(EnvBin) != "") && slices.Contains(homes, b.home(filepath.Dir(homes[0]))) {
			return b, nil
		}
	}
	return binaries{}, fmt.Errorf("a PostgreSQL reads only the data of its own major version, and there is data in %s: set %s to the folder "+
		"of the programs of that version (found: %s in %s), or %s to another folder, to begin with an empty database",
		strings.Join(homes, " and "), EnvBin, found[0].version, found[0].dir, EnvHome)
}

// usable lists the usable binaries in the order of preference. Error: ErrNotFound.
func (f folders) usable(ctx context.Context) (found []binaries, err error) {
	if dir := os.Getenv(EnvBin); dir != "" {
		b, err := inspect(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EnvBin, err)
		}
		return []binaries{b}, nil
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = inspectAll(ctx, filepath.Dir(path))
		}
	}
	var usual []binaries
	for _, pattern := range f {
		dirs, _ := filepath.Glob(pattern) // fails if PAWL_HOME has a bracket
		usual = append(usual, inspectAll(ctx, dirs...)...)
	}
	slices.SortStableFunc(usual, func(a, b binaries) int { return b.major - a.major })
	if found = append(found, usual...); len(found) == 0 {
		return nil, cmp.Or(context.Cause(ctx), ErrNotFound)
	}
	return found, nil
}

// inspectAll returns the usable binaries of the folders.
func inspectAll(ctx context.Context, dirs ...string) (usable []binaries) {
	for _, dir := range dirs {
		if b, err := inspect(ctx, dir); err == nil {
			usable = append(usable, b)
		}
	}
	return usable
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`) // postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)

// inspect checks that the folder holds both programs in a version that Pawl supports.
func inspect(ctx context.Context, dir string) (binaries, error) {
	b := binaries{dir: dir}
	out, err := exec.CommandContext(ctx, b.path("postgres"), "--version").Output()
	if err == nil {
		_, err = exec.LookPath(b.path("initdb"))
	}
	if err != nil {
		return b, fmt.Errorf("no usable PostgreSQL in %s: %w", dir, err)
	}
	if m := versionLine.FindSubmatch(out); m != nil {
		b.version = string(m[1])
		b.major, _ = strconv.Atoi(string(m[2])) // 0 if it is too large
	}
	if b.major < oldestMajor || b.major > newestMajor {
		return b, fmt.Errorf("%s holds %q, and Pawl needs PostgreSQL %d to %d", dir, out, oldestMajor, newestMajor)
	}
	return b, nil
}

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
