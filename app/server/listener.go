package server

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Stats has the connections of a server, and its certificate.
type Stats struct {
	Open    int   // now
	Refused int64 // closed at once, because their address had too many
	Evicted int64 // idle ones that were closed to make place

	TLSEnds     time.Time // of the certificate; zero without TLS
	TLSFailures int64     // how often new files of it could not be used
}

// listener accepts connections within bounds.
//
// It is ours because golang.org/x/net/netutil only counts: there an idle connection keeps out a new one, and one address
// can take all.
type listener struct {
	net.Listener
	limits  Limits
	proxies []netip.Prefix // whose connections are many callers'

	mu        sync.Mutex
	room      sync.Cond // for the one that waits in place
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

// conn is a connection that counts until it is closed.
type conn struct {
	net.Conn
	listener *listener
	address  netip.Addr    // whose it counts as; the zero address for nobody's
	idle     *list.Element // its place among the idle ones; nil for none
	once     sync.Once
}

// Accept returns the next connection that there is room for.
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

// client is the address that a connection counts for.
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

// within reports whether an address is of one of the networks.
func within(networks []netip.Prefix, address netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(address) {
			return true
		}
	}
	return false
}

// admit counts a connection, unless its address has too many.
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

// place waits until the connections are not too many, and closes those for it that do
// nothing. Error: net.ErrClosed.
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

// state is told by the server what a connection does.
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

// Close ends also the wait for room.
func (l *listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.room.Signal()
	l.mu.Unlock()
	return l.Listener.Close()
}

// Close gives its place back. It may be called again.
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

// CloseWrite ends what is written, so that a client still reads the last answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
