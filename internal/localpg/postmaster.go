package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// postmaster is a server process as its lock file, postmaster.pid in the data folder, describes it.
type postmaster struct {
	data  string
	pid   int
	port  int
	ready bool // accepts connections
}

// runningIn returns the server that runs on the data folder, if one does. A lock file that an ended server left behind
// counts for nothing, also when its process number belongs to another program by now.
func runningIn(data string) (postmaster, bool) {
	pm, err := readPidFile(data)
	return pm, err == nil && pm.alive()
}

// readPidFile reads the lock file. Its lines are the process number, the data folder, the start time, the port, the
// socket folder, the listen address, the shared memory key and the state; the server writes the later ones as it starts.
func readPidFile(data string) (postmaster, error) {
	content, err := os.ReadFile(pidFile(data))
	if err != nil {
		return postmaster{}, fmt.Errorf("read the server's lock file: %w", err)
	}
	return parsePidFile(data, string(content))
}

func parsePidFile(data, content string) (postmaster, error) {
	lines := strings.Split(content, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return postmaster{}, fmt.Errorf("%s holds no process number", pidFile(data))
	}
	pm := postmaster{data: data, pid: pid}
	if len(lines) > 4 { // the line of the port is complete
		if pm.port, err = strconv.Atoi(strings.TrimSpace(lines[3])); err != nil {
			return postmaster{}, fmt.Errorf("%s holds no port", pidFile(data))
		}
	}
	pm.ready = pm.port > 0 && len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
	return pm, nil
}

func pidFile(data string) string { return filepath.Join(data, "postmaster.pid") }

// alive reports whether the process is a server on this data folder: its command line says -D and the folder. An ended
// process that nobody has waited for yet has no command line.
func (pm postmaster) alive() bool {
	if args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pm.pid)); err == nil {
		return bytes.Contains(args, []byte("\x00-D\x00"+pm.data+"\x00"))
	} else if _, err := os.Stat("/proc/self/cmdline"); err == nil {
		return false
	}
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pm.pid)).Output()
	return err == nil && strings.Contains(string(out), " -D "+pm.data+" ")
}

func (pm postmaster) ended() bool { return !pm.alive() }

// end sends the signal (SIGINT: fast shutdown, SIGQUIT: immediate) and waits until the server has ended.
func (pm postmaster) end(ctx context.Context, signal syscall.Signal) error {
	if err := syscall.Kill(pm.pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop PostgreSQL (process %d): %w", pm.pid, err)
	}
	what := fmt.Sprintf("PostgreSQL (process %d) to stop", pm.pid)
	return poll(ctx, what, func() (bool, error) { return pm.ended(), nil })
}

// awaitReady waits until the server accepts connections, and returns it with its port. It reports false if the server
// ends instead.
func (pm postmaster) awaitReady(ctx context.Context, ended func() bool) (_ postmaster, ready bool, err error) {
	err = poll(ctx, "PostgreSQL to accept connections", func() (bool, error) {
		now, err := readPidFile(pm.data)
		if ready = err == nil && now.pid == pm.pid && now.ready; ready {
			pm = now
		}
		return ready || ended(), nil
	})
	return pm, ready, err
}

// clearStale makes a left-behind lock file harmless when its process number belongs to another program now, which would
// keep the server from starting. The file is not removed: it also names the shared memory by which PostgreSQL notices
// surviving backends of the ended server. PostgreSQL takes a lock file with its parent's process number for stale, and
// its parent is us.
func clearStale(data string) error {
	content, err := os.ReadFile(pidFile(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, rest, _ := strings.Cut(string(content), "\n")
		err = os.WriteFile(pidFile(data), fmt.Appendf(nil, "%d\n%s", os.Getpid(), rest), 0o600) // its owner stays
	}
	if err != nil {
		return fmt.Errorf("rewrite the server's lock file: %w", err)
	}
	return nil
}
