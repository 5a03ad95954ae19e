package localpg

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// account is the user that runs PostgreSQL for root, because PostgreSQL refuses to run as root. Nil means the current user.
type account syscall.Credential

// serverAccount returns the owner of the data folder, or else the account postgres, or else the account nobody.
func serverAccount(data string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if info, err := os.Stat(data); err == nil {
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 {
			return &account{Uid: st.Uid, Gid: st.Gid}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
			gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
			return &account{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uidErr, gidErr)
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and no unprivileged account exists: " +
		"run as a normal user, or set DATABASE_URL")
}

// own gives the file or folder to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.Uid), int(a.Gid))
}

// runs makes the command run as the account, in a session of its own so that it gets no Ctrl-C of the terminal, and without the
// environment's settings for PostgreSQL and languages.
func (a *account) runs(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: (*syscall.Credential)(a)}
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "PG") || strings.HasPrefix(entry, "LC_") || strings.HasPrefix(entry, "LANG")
	}), "LC_ALL=C")
	return cmd
}

// explain adds the remedy to the error of a command that the account may not run.
func (a *account) explain(cmd *exec.Cmd, err error) error {
	if a == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w: PostgreSQL runs as user %d, without access to %s or the folder of %s: choose another folder, or allow it with "+
		"chmod o+x on the folders above", err, a.Uid, cmd.Dir, cmd.Path)
}

// postmaster is a server process.
type postmaster struct {
	data  string
	pid   int
	port  int
	ready bool // accepts connections
}

func pidFile(data string) string { return filepath.Join(data, "postmaster.pid") }

// runningIn reads the server's lock file, whose lines are the process, the data folder, the start time, the port, the socket folder, the
// address, the shared memory key and the state. It reports false if that process is not a server on the data folder.
func runningIn(data string) (pm postmaster, running bool) {
	content, _ := os.ReadFile(pidFile(data))
	lines := strings.SplitN(string(content)+strings.Repeat("\n", 8), "\n", 9)
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	port, _ := strconv.Atoi(lines[3])
	pm = postmaster{data, pid, port, port > 0 && strings.TrimSpace(lines[7]) == "ready"}
	return pm, err == nil && pid > 0 && pm.alive()
}

// alive reports whether the command line of the process has the data folder. An ended process that its parent has not waited for has no
// command line.
func (pm postmaster) alive() bool {
	if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pm.pid)); err == nil {
		return bytes.Contains(args, []byte("\x00-D\x00"+pm.data+"\x00"))
	} else if _, err := os.Stat("/proc/self/cmdline"); err == nil {
		return false
	}
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pm.pid)).Output()
	return err == nil && strings.Contains(string(out), " -D "+pm.data+" ")
}

// replaced reports whether the program file of the process was removed, as by the upgrade of a package. Only Linux can tell.
func (pm postmaster) replaced() bool {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pm.pid))
	return err == nil && strings.HasSuffix(program, " (deleted)")
}

// end sends the signal and waits until the server has ended.
func (pm postmaster) end(ctx context.Context, signal syscall.Signal) error {
	what := fmt.Sprintf("PostgreSQL (process %d) to stop", pm.pid)
	if err := syscall.Kill(pm.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", what, err)
	}
	return poll(ctx, what, func() (bool, error) { return !pm.alive(), nil })
}

// clearStale replaces the process in the lock file of an ended server, which may be that of another program now, by ours: PostgreSQL
// ignores its parent's. It keeps the file, by which PostgreSQL finds backends of the ended server.
func clearStale(data string) error {
	content, err := os.ReadFile(pidFile(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, rest, _ := strings.Cut(string(content), "\n")
		err = os.WriteFile(pidFile(data), fmt.Appendf(nil, "%d\n%s", os.Getpid(), rest), 0o600) // the owner stays
	}
	return err
}

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
