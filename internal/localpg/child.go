package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is a server process that this process started.
type child struct {
	process *os.Process
	waited  chan struct{} // closed when it has ended
}

// startChild starts a server: one that is bound ends with this process, where the system can do that. The signal comes
// when the thread that started the child ends, so a goroutine keeps that thread to itself until the child has ended.
func startChild(cmd *exec.Cmd, bound bool) (*child, error) {
	if bound {
		dieWithParent(cmd.SysProcAttr)
	}
	waited, started := make(chan struct{}), make(chan error)
	go func() {
		defer close(waited)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // an exit status is all it can report, and the server's log says more
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return &child{cmd.Process, waited}, nil
}

// ended reports whether the server has ended. Unlike postmaster.alive, it can be relied on from the beginning: a process
// has no command line yet while it replaces its parent's program by its own.
func (c *child) ended() bool {
	select {
	case <-c.waited:
		return true
	default:
		return false
	}
}

// resend is how often a server that has not ended is told again.
const resend = 500 * time.Millisecond

// end sends the signal and waits until the server has ended, which also frees its entry in the process table. It sends it
// again and again: a signal that our process ignores (a shell's background job ignores SIGINT) is lost on a server that
// has just begun and has no handler of its own yet.
func (c *child) end(ctx context.Context, signal syscall.Signal) error {
	again := time.NewTicker(resend)
	defer again.Stop()
	for {
		if err := c.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop process %d: %w", c.process.Pid, err)
		}
		select {
		case <-c.waited:
			return nil
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for process %d to stop: %w", c.process.Pid, context.Cause(ctx))
		}
	}
}
