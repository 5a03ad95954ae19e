package client_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/client"
)

// exchangeOf is a server without a network, whose time is that of a synctest bubble. Its credentials last an hour.
type exchangeOf struct {
	calls   chan net.Conn
	closing sync.Once
	pings   bool
	began   time.Time

	mu     sync.Mutex
	opened []time.Duration // when connections were
	shown  []time.Duration // when credentials were
}

func (x *exchangeOf) Accept() (net.Conn, error) {
	if conn, ok := <-x.calls; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (x *exchangeOf) Addr() net.Addr { return &net.TCPAddr{} }
func (x *exchangeOf) Close() error {
	x.closing.Do(func() { close(x.calls) })
	return nil
}

func (x *exchangeOf) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	x.calls <- far
	return near, nil
}

func (x *exchangeOf) note(list *[]time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	*list = append(*list, time.Since(x.began))
}

func (x *exchangeOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	upgrade := websocket.Upgrader{Subprotocols: []string{wire.Subprotocol}}
	conn, err := upgrade.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	x.note(&x.opened)
	var pinging sync.WaitGroup
	done := make(chan struct{})
	if x.pings {
		pinging.Go(func() { ping(conn, done) })
	}
	defer func() {
		close(done)
		_ = conn.Close()
		pinging.Wait()
	}()
	for {
		var m wire.Message
		if err := conn.ReadJSON(&m); err != nil {
			return
		}
		answer := wire.ServerMessage{Op: wire.OpSubscribed, ID: m.ID}
		if m.Op == wire.Authenticate {
			x.note(&x.shown)
			answer = wire.ServerMessage{Op: wire.OpAuthenticated, ID: m.ID, Until: time.Now().Add(time.Hour)}
		}
		text, err := json.Marshal(&answer)
		if err != nil || conn.WriteMessage(websocket.TextMessage, text) != nil {
			return
		}
	}
}

// ping does so about as often as a node, and never when a credential is due: a pipe has no buffer, and both sides would write.
func ping(conn *websocket.Conn, done <-chan struct{}) {
	every := time.NewTicker(19 * time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		case <-done:
			return
		}
	}
}

// follows lets a client follow the log of that server for so long.
func (x *exchangeOf) follows(t *testing.T, long time.Duration) {
	t.Helper()
	x.calls, x.began = make(chan net.Conn), time.Now()
	server := &http.Server{Handler: x}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(x) })
	c, err := client.New(client.Config{URLs: []string{"http://one"}, HTTP: &http.Client{Transport: &http.Transport{DialContext: x.dial}},
		TokenSource: func(context.Context) (string, error) { return "t", nil }, Retry: client.Retry{First: time.Millisecond, Max: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	for _, err := range c.Subscribe(ctx, client.Start, client.Filter{}) {
		if ctx.Err() == nil {
			t.Error(err)
		}
	}
	_ = server.Close()
	running.Wait()
}

// Four fifths of the time that is left, and the connection stays.
func TestACredentialIsShownAgainBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchangeOf{pings: true}
		x.follows(t, 150*time.Minute)
		want := []time.Duration{0, 48 * time.Minute, 96 * time.Minute, 144 * time.Minute}
		if !slices.Equal(x.shown, want) || len(x.opened) != 1 {
			t.Errorf("shown after %v, want %v, over connections that were opened after %v", x.shown, want, x.opened)
		}
	})
}

// A node that has gone without a word is missed within a minute.
func TestASilentConnectionIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchangeOf{}
		x.follows(t, 150*time.Second)
		for i, at := range x.opened {
			if after := time.Duration(i) * time.Minute; at < after || at > after+time.Second {
				t.Errorf("connection %d was opened after %v", i, at)
			}
		}
		if len(x.opened) != 3 {
			t.Errorf("opened after %v", x.opened)
		}
	})
}
