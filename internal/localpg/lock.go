package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// fileLock is an advisory lock on a file. The kernel drops it when the process ends, so it can never be stale. Two
// fileLocks of one process on one file exclude each other like those of two processes.
type fileLock struct{ file *os.File }

// openLock opens (and creates, if need be) the lock file without locking it.
func openLock(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	return &fileLock{file}, nil
}

// lockFile opens the lock file and waits until it holds the exclusive lock.
func lockFile(ctx context.Context, path string) (*fileLock, error) {
	l, err := openLock(path)
	if err != nil {
		return nil, err
	}
	if err := l.wait(ctx, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// try takes the lock (LOCK_SH or LOCK_EX) if that is possible now. Like flock, changing from one kind to the other may
// lose the lock when it fails.
func (l *fileLock) try(how int) (bool, error) {
	err := syscall.Flock(int(l.file.Fd()), how|syscall.LOCK_NB)
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) {
		return err == nil, nil
	}
	return false, fmt.Errorf("lock %s: %w", l.file.Name(), err)
}

// wait takes the lock, asking again and again because a blocking flock cannot be cancelled.
func (l *fileLock) wait(ctx context.Context, how int) error {
	return poll(ctx, "the lock "+l.file.Name(), func() (bool, error) { return l.try(how) })
}

// close releases the lock.
func (l *fileLock) close() error { return l.file.Close() }

// poll calls ready with growing pauses (1 to 50 ms) until it reports true or an error, or until ctx is done.
func poll(ctx context.Context, what string, ready func() (bool, error)) error {
	pause := time.Millisecond
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-timer.C:
		}
		ok, err := ready()
		if ok || err != nil {
			return err
		}
		timer.Reset(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}
