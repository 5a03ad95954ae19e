package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/workflow"
)

// exchangeOf is a server without a network, on the clock of a synctest bubble. Its credentials last
// an hour.
type exchangeOf struct {
	calls   chan net.Conn
	closing sync.Once
	pings   bool
	outage  [2]time.Duration // start and end of an outage
	began   time.Time

	mu     sync.Mutex
	opened []time.Duration // times of connections
	shown  []time.Duration // times of credentials
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
	switch since := time.Since(x.began); {
	case x.outage[0] <= since && since < x.outage[1]:
		return nil, errors.New("nobody is reached")
	case since < x.outage[0]:
		time.AfterFunc(x.outage[0]-since, func() { _ = far.Close() })
	}
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
		answers := []wire.ServerMessage{answer}
		if m.Op == wire.Subscribe {
			answers = append(answers, wire.ServerMessage{Op: wire.OpCaughtUp, ID: m.ID, Position: 7})
		}
		for i := range answers {
			text, err := json.Marshal(&answers[i])
			if err != nil || conn.WriteMessage(websocket.TextMessage, text) != nil {
				return
			}
		}
	}
}

// ping sends a ping about as often as a node, but never when a credential is due: a pipe has no
// buffer, so both sides would block.
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

// follows follows the log for some time and returns what was yielded last.
func (x *exchangeOf) follows(t *testing.T, long time.Duration, change ...func(*client.Config)) (last client.Event, end error) {
	t.Helper()
	x.calls, x.began = make(chan net.Conn), time.Now()
	server := &http.Server{Handler: x}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(x) })
	config := client.Config{URLs: []string{"http://one"}, HTTP: &http.Client{Transport: &http.Transport{DialContext: x.dial}},
		TokenSource: func(context.Context) (string, error) { return "t", nil }, PlainHTTP: true,
		Retry: client.Retry{First: time.Millisecond, Max: time.Millisecond}}
	for _, f := range change {
		f(&config)
	}
	c, err := client.New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	for last, end = range c.Subscribe(ctx, client.Start, client.Filter{}) {
		assert.Errorf(t, end, "nothing has happened, and an event is %+v", last)
	}
	_ = server.Close()
	running.Wait()
	return last, end
}

// A subscription that has received something continues after any outage, and notifies its caller.
func TestSubscriptionSurvivesLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchangeOf{pings: true, outage: [2]time.Duration{time.Minute, 2 * time.Hour}}
		var told, back int
		longest := time.Duration(0)
		last, end := x.follows(t, 3*time.Hour, func(c *client.Config) {
			c.Retry = client.Retry{First: 100 * time.Millisecond, Max: 10 * time.Second}
			c.Notify = func(err error, pause time.Duration) {
				if err == nil {
					back++
					return
				}
				told, longest = told+1, max(longest, pause)
			}
		})
		assert.Truef(t, errors.Is(end, context.DeadlineExceeded) && last.Cursor == 7,
			"it ends with %v, to go on at %d", end, last.Cursor)
		assert.Truef(t, len(x.opened) == 2 && x.opened[1] >= 2*time.Hour && x.opened[1] <= 2*time.Hour+10*time.Second,
			"opened after %v", x.opened)
		assert.Truef(t, told >= 700 && back == 1 && longest <= 10*time.Second && longest >= 5*time.Second,
			"told %d times of a failure and %d times that it goes on, the longest pause is %v", told, back, longest)
	})
}

// A subscription that has received nothing fails.
func TestSubscriptionFailsWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchangeOf{outage: [2]time.Duration{0, time.Hour}}
		told := 0
		last, end := x.follows(t, time.Hour, func(c *client.Config) { c.Notify = func(error, time.Duration) { told++ } })
		if e := wantCode(t, end, workflow.TimedOut); e == nil || told != 9 || last.Cursor != client.Start {
			t.Errorf("%v, told %d times, to go on at %d", end, told, last.Cursor)
		}
	})
}

// The credential is renewed after four fifths of its lifetime, on the same connection.
func TestCredentialIsRenewedBeforeExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchangeOf{pings: true}
		_, _ = x.follows(t, 150*time.Minute)
		want := []time.Duration{0, 48 * time.Minute, 96 * time.Minute, 144 * time.Minute}
		assert.Truef(t, slices.Equal(x.shown, want) && len(x.opened) == 1,
			"shown after %v, want %v, over connections that were opened after %v", x.shown, want, x.opened)
	})
}

// A node that disappears silently is detected within a minute.
func TestSilentConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &exchangeOf{}
		_, _ = x.follows(t, 150*time.Second)
		for i, at := range x.opened {
			after := time.Duration(i) * time.Minute
			assert.Truef(t, at >= after && at <= after+time.Second, "connection %d was opened after %v", i, at)
		}
		assert.Len(t, x.opened, 3, "opened after")
	})
}
