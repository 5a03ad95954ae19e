// Package sdnotifytest plays the part of systemd in tests of notifications.
package sdnotifytest

import (
	"net"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// Socket is what NOTIFY_SOCKET names.
type Socket struct{ conn *net.UnixConn }

// Listen listens at a path, or at a name of the abstract namespace that begins with "@".
func Listen(t testing.TB, name string) *Socket {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &Socket{conn}
}

// Hear waits for the next message.
func (s *Socket) Hear(t testing.TB) string {
	t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(await.Patience)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := s.conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}
