package page_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// cable is a network between the browser and Pawl, which can be cut.
type cable struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
	users sync.WaitGroup
}

// newCable lays one to an address.
func newCable(t *testing.T, to string) *cable {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{listener: listener, to: to, conns: map[net.Conn]bool{}}
	c.users.Go(c.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		c.Cut()
		c.users.Wait()
	})
	return c
}

// Addr is where the browser connects.
func (c *cable) Addr() string { return c.listener.Addr().String() }

// Cut ends all connections, and new ones at once.
func (c *cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for conn := range c.conns {
		_ = conn.Close()
	}
}

// Mend is the end of that.
func (c *cable) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}

func (c *cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.users.Go(func() { c.carry(near) })
	}
}

// carry takes the bytes of a connection to and fro.
func (c *cable) carry(near net.Conn) {
	defer near.Close()
	far, err := new(net.Dialer).DialContext(context.Background(), "tcp", c.to)
	if err != nil {
		return
	}
	defer far.Close()
	if !c.plug(near) {
		return
	}
	defer c.unplug(near)
	c.users.Go(func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	})
	_, _ = io.Copy(near, far)
}

func (c *cable) plug(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = true
	return !c.cut
}

func (c *cable) unplug(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}
