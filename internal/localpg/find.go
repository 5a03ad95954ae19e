package localpg

import (
	"context"
	"errors"
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

// EnvBin names the environment variable that holds the folder of the PostgreSQL binaries to use. When it is set, no
// other folder is looked at.
const EnvBin = "PAWL_PG_BIN"

// ErrNotFound says that no usable PostgreSQL binaries are on this machine. Its text names the ways out.
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

// home is where a server of this version has its data among those that programs share.
func (b binaries) home(dir string) string { return filepath.Join(dir, strconv.Itoa(b.major)) }

// reads reports whether the data in a home is of this version.
func (b binaries) reads(home string) bool { return filepath.Base(home) == strconv.Itoa(b.major) }

// Find looks for PostgreSQL binaries (versions 14 to 18) without installing or starting anything, in this order:
// the folder in PAWL_PG_BIN and, if that is set, nowhere else; the folders that pg_config, postgres and initdb on PATH
// lead to; the newest in the usual folders of packages and installers and in that of what Start downloaded earlier. It
// returns the folder and the version, such as "15.18", or an error that is ErrNotFound.
func Find() (binDir, version string, err error) {
	b, err := usualFolders().find(context.Background())
	return b.dir, b.version, err
}

// folders are patterns of folders to look for binaries in, beyond those that the environment names.
type folders []string

// usualFolders are those that packages and installers use, and that of our downloads.
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

// find returns the binaries to use, or ErrNotFound: where there are homes with data, those of the data's version.
func (f folders) find(ctx context.Context, homes ...string) (binaries, error) {
	found, err := f.usable(ctx)
	if err != nil {
		return binaries{}, err
	}
	certain := len(homes) == 1 || os.Getenv(EnvBin) != ""
	for _, b := range found {
		if len(homes) == 0 || certain && slices.ContainsFunc(homes, b.reads) {
			return b, nil
		}
	}
	return binaries{}, fmt.Errorf("a PostgreSQL reads only the data of its own major version, and there is data in %s: set %s to the folder "+
		"of the programs of that version (found: %s in %s), or %s to another folder, to begin with an empty database",
		strings.Join(homes, " and "), EnvBin, found[0].version, found[0].dir, EnvHome)
}

// usable lists the usable binaries, first those to prefer. Without any the error is ErrNotFound.
func (f folders) usable(ctx context.Context) ([]binaries, error) {
	if dir := os.Getenv(EnvBin); dir != "" {
		b, err := inspect(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EnvBin, err)
		}
		return []binaries{b}, nil
	}
	var usual []string
	for _, pattern := range f {
		dirs, _ := filepath.Glob(pattern) // it fails for a home with a bracket in its name: nothing to find
		usual = append(usual, dirs...)
	}
	newestFirst := inspectAll(ctx, usual)
	slices.SortStableFunc(newestFirst, func(a, b binaries) int { return b.major - a.major })
	found := append(inspectAll(ctx, onPath(ctx)), newestFirst...)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case len(found) == 0:
		return nil, ErrNotFound
	}
	return found, nil
}

// onPath lists the folders that the programs on PATH lead to. On Debian only pg_config is there, and names the folder
// of the rest.
func onPath(ctx context.Context) []string {
	var dirs []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, program := range []string{"postgres", "initdb"} {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	return dirs
}

// inspectAll returns the binaries of those folders that have usable ones.
func inspectAll(ctx context.Context, dirs []string) (usable []binaries) {
	for _, dir := range dirs {
		if b, err := inspect(ctx, dir); err == nil {
			usable = append(usable, b)
		}
	}
	return usable
}

// inspect checks that the folder holds both programs in a version that Pawl supports.
func inspect(ctx context.Context, dir string) (binaries, error) {
	b := binaries{dir: dir}
	if _, err := exec.LookPath(b.path("initdb")); err != nil {
		return binaries{}, fmt.Errorf("no usable initdb in %s: %w", dir, err)
	}
	out, err := exec.CommandContext(ctx, b.path("postgres"), "--version").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("run postgres --version in %s: %w", dir, err)
	}
	if b.version, b.major, err = parseVersion(string(out)); err != nil {
		return binaries{}, err
	}
	if b.major < oldestMajor || b.major > newestMajor {
		return binaries{}, fmt.Errorf("%s holds PostgreSQL %s, and Pawl needs %d to %d", dir, b.version, oldestMajor, newestMajor)
	}
	return b, nil
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// parseVersion reads the output of postgres --version: "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)".
func parseVersion(line string) (version string, major int, err error) {
	if m := versionLine.FindStringSubmatch(line); m != nil {
		if major, err = strconv.Atoi(m[2]); err == nil {
			return m[1], major, nil
		}
	}
	return "", 0, errors.New("not the version of a PostgreSQL server: " + strconv.Quote(line))
}
