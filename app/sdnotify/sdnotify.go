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

// The environment variables of systemd.
const (
	envSocket   = "NOTIFY_SOCKET"
	envWatchdog = "WATCHDOG_USEC" // maximum interval of watchdog signals, in microseconds
	envPID      = "WATCHDOG_PID"  // process that sends them
)

// Notifier sends notifications to systemd. It is a no-op if NOTIFY_SOCKET is unset. Errors are logged: they do not end the service.
type Notifier struct {
	socket string        // "" for none
	every  time.Duration // interval of watchdog signals; zero for none
	log    *slog.Logger

	alive   chan struct{} // closed by Close; nil before Ready or without a watchdog
	waits   sync.WaitGroup
	closing sync.Once
}

// FromEnvironment reads the environment variables of systemd and unsets them: a PostgreSQL that this process starts would use them.
func FromEnvironment(log *slog.Logger) *Notifier {
	n := &Notifier{socket: os.Getenv(envSocket), log: log}
	wanted, err := strconv.ParseInt(os.Getenv(envWatchdog), 10, 64)
	if pid := os.Getenv(envPID); err == nil && wanted > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.every = time.Duration(wanted) * time.Microsecond / 3
	}
	for _, name := range []string{envSocket, envWatchdog, envPID} {
		_ = os.Unsetenv(name) // cannot fail for these names
	}
	return n
}

// Ready reports that the service is ready, with a status, and starts watchdog signals if systemd requests them. They only prove that the
// process runs: an outage of the database or overload must not cause a restart.
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

// Close stops the watchdog signals. It may be called twice.
func (n *Notifier) Close() {
	n.closing.Do(func() {
		if n.alive != nil {
			close(n.alive)
		}
	})
	n.waits.Wait()
}

// tellTimeout bounds the sending of a message.
const tellTimeout = time.Second

// tell sends a message. Names with "@" are in the abstract namespace.
func (n *Notifier) tell(message string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err == nil {
		// A receiver with a full queue must not block the service.
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
