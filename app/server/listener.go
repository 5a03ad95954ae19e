package server

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Stats has the counts of connections, and the state of the certificate.
type Stats struct {
	Open    int   // current
	Refused int64 // closed at once by the limit per address
	Evicted int64 // idle ones that were closed for new ones

	TLSEnds     time.Time // of the certificate; zero without TLS
	TLSFailures int64     // failed reloads
}

// listener limits connections. Unlike golang.org/x/net/netutil it closes idle connections for new ones, and has a limit per address.
type listener struct {
	net.Listener
	limits  Limits
	proxies []netip.Prefix // exempt from the limit per address

	mu        sync.Mutex
	room      sync.Cond // for the caller of place
	closed    bool
	perClient map[netip.Addr]int
	idle      list.List // of *conn, the longest idle first
	counts    Stats
}

func newListener(l net.Listener, limits Limits, proxies ...netip.Prefix) *listener {
	x := &listener{Listener: l, limits: limits, proxies: proxies, perClient: map[netip.Addr]int{}}
	x.room.L = &x.mu
	return x
}

// conn is a counted connection.
type conn struct {
	net.Conn
	listener *listener
	address  netip.Addr    // the address that it counts for; zero for none
	idle     *list.Element // its element of the idle list; nil if it is not idle
	once     sync.Once
}

// Accept returns the next connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		socket, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: socket, listener: l, address: l.client(socket)}
		if !l.admit(c.address) {
			_ = socket.Close()
			continue
		}
		if err := l.place(); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
}

// client returns the address that a connection counts for.
func (l *listener) client(socket net.Conn) netip.Addr {
	tcp, ok := socket.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if within(l.proxies, address) {
		return netip.Addr{}
	}
	return address
}

// within reports whether an address is in one of the networks.
func within(networks []netip.Prefix, address netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(address) {
			return true
		}
	}
	return false
}

// admit counts a connection within the limit per address.
func (l *listener) admit(address netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if address.IsValid() {
		if l.perClient[address] >= l.limits.PerAddress {
			l.counts.Refused++
			return false
		}
		l.perClient[address]++
	}
	l.counts.Open++
	return true
}

// place waits until there is room for a connection, and closes an idle one for it. It returns net.ErrClosed after Close.
func (l *listener) place() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.counts.Open > l.limits.Connections && !l.closed {
		oldest := l.idle.Front()
		if oldest == nil {
			l.room.Wait()
			continue
		}
		c := oldest.Value.(*conn)
		l.notIdle(c)
		l.counts.Evicted++
		l.mu.Unlock()
		_ = c.Close()
		l.mu.Lock()
	}
	if l.closed {
		return net.ErrClosed
	}
	return nil
}

// state implements http.Server.ConnState.
func (l *listener) state(over net.Conn, now http.ConnState) {
	c, ok := underneath(over).(*conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now != http.StateIdle {
		l.notIdle(c)
	} else if c.idle == nil {
		c.idle = l.idle.PushBack(c)
		l.room.Signal()
	}
}

func (l *listener) notIdle(c *conn) {
	if c.idle != nil {
		l.idle.Remove(c.idle)
		c.idle = nil
	}
}

func (l *listener) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Close also ends waiting in place.
func (l *listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.room.Signal()
	l.mu.Unlock()
	return l.Listener.Close()
}

// Close closes the connection and uncounts it once.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = c.Conn.Close()
		c.listener.release(c)
	})
	return err
}

func (l *listener) release(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notIdle(c)
	l.counts.Open--
	if l.perClient[c.address]--; l.perClient[c.address] <= 0 {
		delete(l.perClient, c.address)
	}
	l.room.Signal()
}

// CloseWrite closes the write side, so that the client can read the last answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
