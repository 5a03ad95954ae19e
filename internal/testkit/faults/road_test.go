package faults

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// road is the network between a client and a node: what comes over it may be lost, late, cut short or there twice.
type road struct {
	listener net.Listener
	to       atomic.Pointer[string] // the node's address
	met      [kindsOfFate]atomic.Int64

	mu    sync.Mutex
	dice  *rand.Rand
	conns map[net.Conn]bool // nil when the test is over
	work  sync.WaitGroup
}

// What becomes of an exchange.
const (
	arrives = iota
	requestLost
	requestTwice
	late
	answerLost
	answerCut
	answerTwice
	streamCut
	kindsOfFate
)

// newRoad builds one to an address. The seed decides about every exchange.
func newRoad(t testing.TB, to string, seed uint64) *road {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &road{listener: listener, dice: rand.New(rand.NewPCG(seed, seed)), conns: map[net.Conn]bool{}}
	r.to.Store(&to)
	r.work.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.mu.Lock()
		for c := range r.conns {
			_ = c.Close()
		}
		r.conns = nil
		r.mu.Unlock()
		r.work.Wait()
	})
	return r
}

func (r *road) url() string { return "http://" + r.listener.Addr().String() }

// fate decides about an exchange: four of ten simply arrive.
func (r *road) fate() (kind int, dice int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind = r.dice.IntN(10) - 3; kind < 0 || kind >= streamCut {
		kind = arrives
	}
	return kind, r.dice.Int64N(1 << 16)
}

func (r *road) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.serve(conn) })
	}
}

// open makes a connection one that ends with the test. It is false when that is over.
func (r *road) open(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns != nil {
		r.conns[c] = true
	}
	return r.conns != nil
}

func (r *road) close(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// dial connects to the node.
func (r *road) dial() (net.Conn, bool) {
	conn, err := net.Dial("tcp", *r.to.Load())
	if err != nil {
		return nil, false
	}
	if !r.open(conn) {
		_ = conn.Close()
		return nil, false
	}
	return conn, true
}

// serve passes the requests of a connection on, until one has a bad end.
func (r *road) serve(near net.Conn) {
	if !r.open(near) {
		_ = near.Close()
		return
	}
	defer r.close(near)
	requests := bufio.NewReader(near)
	for {
		request, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		if strings.EqualFold(request.Header.Get("Upgrade"), "websocket") {
			r.stream(near, request)
			return
		}
		if !r.exchange(near, request, body) {
			return
		}
	}
}

// exchange passes a request on, and its answer back. It reports whether the connection goes on.
func (r *road) exchange(near net.Conn, request *http.Request, body []byte) bool {
	kind, dice := r.fate()
	r.met[kind].Add(1)
	switch kind {
	case requestLost:
		return false
	case requestTwice:
		r.work.Go(func() { _, _ = r.ask(request, body) })
	case late:
		await.Pass("the network is slow", time.Duration(dice%20)*time.Millisecond)
	}
	answer, ok := r.ask(request, body)
	switch {
	case !ok, kind == answerLost:
		return false
	case kind == answerCut:
		answer = answer[:int(dice)%len(answer)]
	case kind == answerTwice:
		answer = append(answer, answer...)
	}
	_, err := near.Write(answer)
	return err == nil && kind != answerCut
}

// ask sends a request to the node, and returns the bytes of its answer.
func (r *road) ask(request *http.Request, body []byte) ([]byte, bool) {
	far, ok := r.dial()
	if !ok {
		return nil, false
	}
	defer r.close(far)
	own := request.Clone(context.Background())
	own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if err := own.Write(far); err != nil {
		return nil, false
	}
	response, err := http.ReadResponse(bufio.NewReader(far), own)
	if err != nil {
		return nil, false
	}
	var answer bytes.Buffer
	if err := response.Write(&answer); err != nil {
		return nil, false
	}
	return answer.Bytes(), true
}

// stream passes a WebSocket connection on, up to some byte.
func (r *road) stream(near net.Conn, request *http.Request) {
	far, ok := r.dial()
	if !ok {
		return
	}
	defer r.close(far)
	if err := request.Write(far); err != nil {
		return
	}
	r.work.Go(func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	})
	_, dice := r.fate()
	if _, err := io.CopyN(near, far, 500+dice); err == nil {
		r.met[streamCut].Add(1)
	}
}
