// Package sdnotify reports the state of a service to systemd: ready, stopping, alive. It implements the protocol of sd_notify(3), a
// datagram to the socket that NOTIFY_SOCKET names.
package sdnotify

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The variables by which systemd says what it wants to know.
const (
	envSocket   = "NOTIFY_SOCKET"
	envWatchdog = "WATCHDOG_USEC" // the longest time between two signs of life, in microseconds
	envPID      = "WATCHDOG_PID"  // whose they are to be
)

// Notifier sends notifications to systemd. It is a no-op if NOTIFY_SOCKET is unset. Errors are logged: they do not end the service.
type Notifier struct {
	socket string        // "" for nobody
	every  time.Duration // between two signs of life; 0 where none are wanted
	log    *slog.Logger

	alive   chan struct{} // closed by Close; nil before Ready, or where no signs are wanted
	waits   sync.WaitGroup
	closing sync.Once
}

// FromEnvironment takes what systemd says from the environment, and out of it: a PostgreSQL that this process starts would
// say in its place that it is ready.
func FromEnvironment(log *slog.Logger) *Notifier {
	n := &Notifier{socket: os.Getenv(envSocket), log: log}
	wanted, err := strconv.ParseInt(os.Getenv(envWatchdog), 10, 64)
	if pid := os.Getenv(envPID); err == nil && wanted > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.every = time.Duration(wanted) * time.Microsecond / 3
	}
	for _, name := range []string{envSocket, envWatchdog, envPID} {
		_ = os.Unsetenv(name) // which fails for no such name
	}
	return n
}

// Ready says that the service serves, and in a few words what, and begins to give signs of life where they are wanted: that
// this process runs. A database that is away, or more requests than can be served, must not end in a restart, so a sign says
// nothing of them.
func (n *Notifier) Ready(status string) {
	n.tell("READY=1\nSTATUS=" + strings.ReplaceAll(status, "\n", " "))
	if n.socket == "" || n.every <= 0 {
		return
	}
	n.alive = make(chan struct{})
	n.waits.Go(func() {
		tick := time.NewTicker(n.every)
		defer tick.Stop()
		for {
			select {
			case <-n.alive:
				return
			case <-tick.C:
				n.tell("WATCHDOG=1")
			}
		}
	})
}

// Stopping reports that the service stops. Watchdog signals continue until Close.
func (n *Notifier) Stopping() { n.tell("STOPPING=1\nSTATUS=stopping") }

// Close ends the signs of life. It may be called twice.
func (n *Notifier) Close() {
	n.closing.Do(func() {
		if n.alive != nil {
			close(n.alive)
		}
	})
	n.waits.Wait()
}

// tellTimeout bounds the time that a message waits for its receiver.
const tellTimeout = time.Second

// tell sends a message. A name that begins with "@" is one in the abstract namespace, as it is for package net.
func (n *Notifier) tell(message string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		// A receiver that does not read, once its queue is full, must not keep the service from stopping.
		err = conn.SetWriteDeadline(time.Now().Add(tellTimeout))
		if err == nil {
			_, err = conn.Write([]byte(message))
		}
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		n.log.Warn("cannot notify systemd of the service's state", "message", message, "error", err)
	}
}
