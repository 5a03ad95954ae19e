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

// proxy forwards between an engine and its database and can fail like a network. It parses the protocol as far as needed to recognize
// commits.
type proxy struct {
	listener         net.Listener
	network, address string // of the database
	cut              func() fate
	lost             atomic.Int64           // commits without an answer
	doomed           atomic.Pointer[string] // drop the answer to the next commit that contains this text; nil: none

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
	work  sync.WaitGroup
}

// fate is the outcome of a commit.
type fate int

const (
	passed    fate = iota
	unsent         // the connection ends before the commit arrives
	ambiguous      // it ends while the commit is under way
	unheard        // it ends when the commit is done, before the answer arrives
)

// startProxy starts a proxy to the pool's database and returns it with a pool through it. cut is called for every commit.
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

// setDown closes all connections and, while the proxy is down, refuses new ones.
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

// track registers a connection to be closed by setDown. It reports false if the proxy is down.
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

// serve forwards messages until one side closes or the connection is cut.
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
	deaf           atomic.Bool // the client gets no further answers

	statements map[string]string // prepared, by name
	inTx       bool
	commits    bool // the gathered messages commit
	doomed     bool // and its answer is lost
}

func (l *link) passAnswers() {
	defer l.client.Close()
	for {
		message, err := readMessage(l.server, 1, nil)
		if err != nil {
			return
		}
		if l.deaf.Load() {
			if message[0] == 'Z' { // ready: the commit is done
				return
			}
			continue
		}
		if _, err := l.client.Write(message); err != nil {
			return
		}
	}
}

// passRequests gathers messages up to the next Sync or simple query and forwards them together.
func (l *link) passRequests() {
	l.statements = map[string]string{}
	pending, err := readMessage(l.client, 0, nil) // startup
	if err != nil || !l.send(pending) {
		return
	}
	for pending = pending[:0]; ; {
		begin := len(pending)
		if pending, err = readMessage(l.client, 1, pending); err != nil {
			return
		}
		if ends := l.look(pending[begin], pending[begin+5:]); !ends {
			continue
		}
		if !l.send(pending) {
			return
		}
		pending = pending[:0]
	}
}

// readMessage appends a message to buf: a type, except at startup, the length and the body.
func readMessage(from io.Reader, typeSize int, buf []byte) ([]byte, error) {
	head := make([]byte, typeSize+4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	buf = append(buf, head...)
	body := make([]byte, binary.BigEndian.Uint32(head[typeSize:])-4)
	_, err := io.ReadFull(from, body)
	return append(buf, body...), err
}

// look records the statements of a message and reports whether the client now waits.
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

// send forwards messages. It reports false if the connection is cut.
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
