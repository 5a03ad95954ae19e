package localpg

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// child is a server process that this process started. Until it is waited for or released, it is ours to wait for.
type child struct {
	cmd    *exec.Cmd
	waited chan struct{} // closed when a bound child has ended; nil for a free one
	reaped bool          // a free child has ended
}

// startFree starts a server that may outlive this process.
func startFree(cmd *exec.Cmd) (*child, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return &child{cmd: cmd}, nil
}

// startBound starts a server that ends with this process, where the system can do that. The signal comes when the
// thread that started the child ends, so a goroutine keeps that thread to itself until the child has ended.
func startBound(cmd *exec.Cmd) (*child, error) {
	dieWithParent(cmd.SysProcAttr)
	c := &child{cmd: cmd, waited: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(c.waited)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // an exit status is all it can report, and the server's log says more
		}
	}()
	if err := <-started; err != nil {
		<-c.waited
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return c, nil
}

// ended reports whether the server has ended. Unlike postmaster.alive, it can be relied on from the beginning: a process
// has no command line yet while it replaces its parent's program by its own.
func (c *child) ended() bool {
	if c.waited != nil {
		select {
		case <-c.waited:
			return true
		default:
			return false
		}
	}
	if !c.reaped {
		pid, err := syscall.Wait4(c.pid(), nil, syscall.WNOHANG, nil)
		c.reaped = pid == c.pid() || errors.Is(err, syscall.ECHILD)
	}
	return c.reaped
}

// end sends the signal and waits until the server has ended, which also frees its entry in the process table.
func (c *child) end(ctx context.Context, signal syscall.Signal) error {
	if c.ended() {
		return nil
	}
	return endProcess(ctx, c.pid(), signal, c.ended)
}

// release leaves a free child to itself.
func (c *child) release() error { return c.cmd.Process.Release() }

func (c *child) pid() int { return c.cmd.Process.Pid }
