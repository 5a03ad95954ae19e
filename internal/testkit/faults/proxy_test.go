package faults

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// proxy stands between an engine and its database and can fail as a network
// does. It understands just enough of the protocol to know when a commit is on
// its way.
type proxy struct {
	listener         net.Listener
	network, address string // of the database
	cut              func() fate
	lost             atomic.Int64           // answers to commits that were not passed on
	doomed           atomic.Pointer[string] // the next commit with a statement like this is not heard; nil: none

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
	work  sync.WaitGroup
}

// fate is what becomes of a commit.
type fate int

const (
	passed    fate = iota
	unsent         // the connection ends before the commit arrives
	ambiguous      // it ends while the commit is under way
	unheard        // it ends when the commit is done, before the answer arrives
)

// startProxy starts a proxy to the pool's database, and returns it with a pool
// that goes through it. cut is asked at every commit.
func startProxy(t testing.TB, direct *pgxpool.Pool, cut func() fate) (*proxy, *pgxpool.Pool) {
	t.Helper()
	config := direct.Config().Copy()
	p := &proxy{cut: cut, conns: map[net.Conn]bool{}}
	p.network, p.address = pgconn.NetworkAddress(config.ConnConfig.Host, config.ConnConfig.Port)
	var err error
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.work.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.setDown(true)
		p.work.Wait()
	})
	config.ConnConfig.Host = "127.0.0.1"
	config.ConnConfig.Port = uint16(p.listener.Addr().(*net.TCPAddr).Port)
	config.ConnConfig.TLSConfig, config.ConnConfig.Fallbacks = nil, nil
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return p, pool
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // the test is over
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// setDown cuts all connections, and refuses new ones for as long as it is down.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down = down; !down {
		return
	}
	for c := range p.conns {
		_ = c.Close()
	}
}

// track makes a connection one that is cut when the proxy goes down. It is false
// when the proxy is down.
func (p *proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.down {
		p.conns[c] = true
	}
	return !p.down
}

func (p *proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// serve passes messages on until one side is gone or the connection is cut.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.track(client) {
		return
	}
	defer p.forget(client)
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.track(server) {
		return
	}
	defer p.forget(server)
	link := &link{p: p, client: client, server: server}
	var answers sync.WaitGroup
	answers.Go(link.passAnswers)
	link.passRequests()
	_ = server.Close()
	_ = client.Close()
	answers.Wait()
}

// link is one connection through the proxy.
type link struct {
	p              *proxy
	client, server net.Conn
	deaf           atomic.Bool // the client hears nothing more

	statements map[string]string // prepared, by name
	inTx       bool
	commits    bool // what is gathered until the next Sync commits
	doomed     bool // and its answer is lost
}

func (l *link) passAnswers() {
	defer l.client.Close()
	var head [5]byte
	for {
		if _, err := io.ReadFull(l.server, head[:]); err != nil {
			return
		}
		message := append(head[:], make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
		if _, err := io.ReadFull(l.server, message[5:]); err != nil {
			return
		}
		if l.deaf.Load() {
			if head[0] == 'Z' { // ready: the commit is done
				return
			}
			continue
		}
		if _, err := l.client.Write(message); err != nil {
			return
		}
	}
}

// passRequests gathers messages up to the next Sync or simple query, and passes
// them on together.
func (l *link) passRequests() {
	l.statements = map[string]string{}
	startup := make([]byte, 4)
	if _, err := io.ReadFull(l.client, startup); err != nil {
		return
	}
	startup = append(startup, make([]byte, binary.BigEndian.Uint32(startup)-4)...)
	if _, err := io.ReadFull(l.client, startup[4:]); err != nil {
		return
	}
	if _, err := l.server.Write(startup); err != nil {
		return
	}
	var pending []byte
	var head [5]byte
	for {
		if _, err := io.ReadFull(l.client, head[:]); err != nil {
			return
		}
		begin := len(pending)
		pending = append(append(pending, head[:]...), make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
		if _, err := io.ReadFull(l.client, pending[begin+5:]); err != nil {
			return
		}
		if ends := l.look(head[0], pending[begin+5:]); !ends {
			continue
		}
		if !l.send(pending) {
			return
		}
		pending = pending[:0]
	}
}

// look takes notice of a message and reports whether the client now waits.
func (l *link) look(kind byte, body []byte) (ends bool) {
	switch kind {
	case 'P': // Parse
		name, rest, _ := bytes.Cut(body, []byte{0})
		sql, _, _ := bytes.Cut(rest, []byte{0})
		l.statements[string(name)] = string(sql)
		return false
	case 'B': // Bind
		_, rest, _ := bytes.Cut(body, []byte{0})
		name, _, _ := bytes.Cut(rest, []byte{0})
		l.execute(l.statements[string(name)])
		return false
	case 'Q': // a simple query
		sql, _, _ := bytes.Cut(body, []byte{0})
		l.execute(string(sql))
		return true
	case 'D', 'E', 'C': // Describe, Execute, Close
		return false
	default:
		return true
	}
}

func (l *link) execute(sql string) {
	if d := l.p.doomed.Load(); d != nil && strings.Contains(sql, *d) && l.p.doomed.CompareAndSwap(d, nil) {
		l.doomed = true
	}
	switch verb, _, _ := strings.Cut(strings.ToLower(sql), " "); {
	case verb == "begin":
		l.inTx = true
	case verb == "rollback" && !strings.Contains(sql, " "):
		l.inTx = false
	case verb == "commit":
		l.inTx, l.commits = false, true
	case !l.inTx && strings.Contains(sql, "INSERT INTO pawl.command"):
		l.commits = true
	}
}

// send passes a piece on. It reports false when the connection is cut.
func (l *link) send(piece []byte) bool {
	end := passed
	if l.commits {
		l.commits = false
		if end = l.p.cut(); l.doomed {
			l.doomed, end = false, unheard
		}
	}
	if end != passed {
		l.p.lost.Add(1)
	}
	switch end {
	case unsent:
		return false
	case unheard:
		l.deaf.Store(true)
	}
	if _, err := l.server.Write(piece); err != nil {
		return false
	}
	if end == unheard {
		// The server's answer ends the other direction, and so the client's.
		_, _ = io.Copy(io.Discard, l.client)
	}
	return end == passed
}
