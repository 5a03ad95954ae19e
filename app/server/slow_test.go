package server

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowly sends a byte on each connection. Those that are gone by then are passed over.
func slowly(connections []net.Conn) {
	for _, c := range connections {
		_, _ = c.Write([]byte("x"))
	}
}

// Half of them never come to the end of a header, half never to that of a body.
func TestSlowClientsHoldNoRequestOfAGoodOne(t *testing.T) {
	const slow, most = 2000, 40 << 10
	s := serving(t, Config{Limits: Limits{HeaderTime: time.Hour, BodyTime: time.Hour}}, answering)
	if err := get(t.Context(), s); err != nil { // what is made once is there
		t.Fatal(err)
	}
	before := memory()
	var connections []net.Conn
	for i := range slow {
		begin := "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "
		if i%2 == 0 {
			begin = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"
		}
		connections = append(connections, dial(t, s, begin))
	}
	for range 5 {
		slowly(connections)
		for range 20 {
			require.NoError(t, get(t.Context(), s))
		}
	}
	open := s.Stats().Open
	require.Truef(t, open >= slow, "only %d connections are open", open)
	each := (memory() - before) / slow
	t.Logf("%d bytes for each slow connection, with the client's end of it", each)
	assert.Truef(t, each <= most, "each slow connection takes %d bytes, more than %d", each, most)
	runtime.KeepAlive(connections)
}

// memory is what is in use for objects and stacks, in bytes.
func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func TestSlowClientsAreDisconnected(t *testing.T) {
	short := Limits{HeaderTime: 300 * time.Millisecond, BodyTime: 300 * time.Millisecond, IdleTime: 300 * time.Millisecond}
	unread := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") })
	for name, tt := range map[string]struct {
		begin   string
		handler http.Handler
	}{
		"nothing":                  {"", answering},
		"half of a header":         {"GET / HTTP/1.1\r\nHost: a\r\nX-", answering},
		"half of a body":           {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", answering},
		"a body that nobody reads": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", unread},
		"one request":              {whole, answering},
		"a second half":            {whole + "GET / HTTP/1.1\r\nHo", answering},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended(t, dial(t, serving(t, Config{Limits: short}, tt.handler), tt.begin))
		})
	}
}

// A request that takes longer than its body may is not cut off.
func TestTheTimeOfABodyEndsWithTheBody(t *testing.T) {
	t.Parallel()
	const short = 2 * time.Second
	waiting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		assert.NoError(t, err)
		select {
		case <-r.Context().Done():
			t.Error("the request was ended")
		case <-time.After(5 * short / 2): // longer than both
		}
		_, _ = io.WriteString(w, "well")
	})
	s := serving(t, Config{Limits: Limits{HeaderTime: short, BodyTime: short}}, waiting)
	answered(t, dial(t, s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"))
}

func TestALongHeaderIsRefused(t *testing.T) {
	s := serving(t, Config{}, answering)
	c := dial(t, s, "GET / HTTP/1.1\r\nHost: a\r\nX-Long: "+strings.Repeat("x", 70<<10)+"\r\n\r\n")
	text, _ := io.ReadAll(c)
	assert.Truef(t, strings.HasPrefix(string(text), "HTTP/1.1 431 "), "%.40q", text)
}
