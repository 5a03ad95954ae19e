package localpg

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
