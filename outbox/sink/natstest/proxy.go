package natstest

import (
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP proxy that can withhold a server's responses, so that clients miss acknowledgements.
type Proxy struct {
	listener net.Listener
	server   string
	work     sync.WaitGroup
	flow     sync.RWMutex // write-locked while responses are withheld

	mu      sync.Mutex
	stalled bool
	closed  bool
	conns   []net.Conn
}

// NewProxy starts a proxy for a server, which ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: server}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		if err := p.listener.Close(); err != nil {
			t.Error(err)
		}
		p.Cut()
		p.Resume()
		p.work.Wait()
	})
	return p
}

// URL returns the URL for clients.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Stall withholds responses until Resume.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stalled {
		p.stalled = true
		p.flow.Lock()
	}
}

// Resume forwards withheld responses. It is a no-op without a stall.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled {
		p.stalled = false
		p.flow.Unlock()
	}
}

// Cut closes all connections and discards withheld responses. New connections are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		conn.Close()
	}
	p.conns = nil
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
		p.mu.Lock()
		if p.conns = append(p.conns, client, server); p.closed {
			client.Close()
			server.Close()
		}
		p.mu.Unlock()
		p.work.Go(func() { p.forward(server, client, false) })
		p.work.Go(func() { p.forward(client, server, true) })
	}
}

// forward copies until one side ends, then closes both. Responses wait while they are withheld.
func (p *Proxy) forward(to, from net.Conn, responses bool) {
	defer to.Close()
	defer from.Close()
	write := to.Write
	if responses {
		write = func(b []byte) (int, error) {
			p.flow.RLock()
			defer p.flow.RUnlock()
			return to.Write(b)
		}
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if _, wrong := write(buffer[:n]); err != nil || wrong != nil {
			return
		}
	}
}
