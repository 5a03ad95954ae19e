package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// fileLock is an advisory lock on a file. The kernel releases it when the process ends. Two fileLocks of one process on one file exclude
// each other like those of two processes.
type fileLock struct{ *os.File }

// lockFile creates the file and its folder if they are missing, and waits for the lock: LOCK_SH or LOCK_EX.
func lockFile(ctx context.Context, path string, how int) (fileLock, error) {
	err := makeFolder(filepath.Dir(path))
	file, openErr := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err = cmp.Or(err, openErr); err != nil {
		return fileLock{}, err
	}
	l := fileLock{file}
	if err := l.wait(ctx, how); err != nil {
		return fileLock{}, errors.Join(err, l.Close())
	}
	return l, nil
}

// try takes the lock if that is possible now. Changing from one kind to the other may lose the lock when it fails.
func (l fileLock) try(how int) bool { return syscall.Flock(int(l.Fd()), how|syscall.LOCK_NB) == nil }

// wait takes the lock. It polls because a blocking flock cannot be cancelled.
func (l fileLock) wait(ctx context.Context, how int) error {
	return poll(ctx, "the lock "+l.Name(), func() (bool, error) { return l.try(how), nil })
}

// poll calls ready with growing pauses (1 to 50 ms) until it reports true or an error, or until ctx is done.
func poll(ctx context.Context, what string, ready func() (bool, error)) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if ok, err := ready(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}
