package natstest

import (
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP proxy that can withhold a server's responses, so that clients miss
// acknowledgements.
type Proxy struct {
	listener net.Listener
	server   string
	work     sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	stalled bool
	closed  bool
	conns   map[net.Conn]struct{}
}

// NewProxy starts a proxy for a server, which ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: server, conns: make(map[net.Conn]struct{})}
	p.changed = sync.NewCond(&p.mu)
	p.work.Go(p.accept)
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// URL returns the URL for clients.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Stall withholds responses until Resume.
func (p *Proxy) Stall() { p.set(true) }

// Resume forwards withheld responses.
func (p *Proxy) Resume() { p.set(false) }

// Cut closes all connections and discards withheld responses. New connections are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.Close()
	}
	clear(p.conns)
	p.changed.Broadcast()
}

func (p *Proxy) set(stalled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = stalled
	p.changed.Broadcast()
}

func (p *Proxy) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.work.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close() // the client sees a missing server
			continue
		}
		if !p.keep(client, server) {
			return
		}
		p.work.Go(func() { p.forward(server, client, nil) })
		p.work.Go(func() { p.forward(client, server, p.wait) })
	}
}

// keep registers connections for Cut. It returns false if the proxy is closed.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if p.closed {
			conn.Close()
		} else {
			p.conns[conn] = struct{}{}
		}
	}
	return !p.closed
}

// wait waits until the connection is not stalled or is closed.
func (p *Proxy) wait(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, whole := p.conns[conn]; p.stalled && whole && !p.closed; _, whole = p.conns[conn] {
		p.changed.Wait()
	}
}

// forward copies until one side ends, then closes both. It calls before, if not nil, before each
// write.
func (p *Proxy) forward(to, from net.Conn, before func(net.Conn)) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if before != nil {
			before(to)
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
