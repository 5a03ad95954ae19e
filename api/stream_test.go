package api_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/workflow"
)

func TestSubscription_FromStart(t *testing.T) {
	s := newServer(t)
	first, _ := s.someEvents()
	c := s.dial()
	assert.Equal(t, api.Subprotocol, c.ws.Subprotocol(), "subprotocol")
	m := c.subscribe("a", `"start"`, `{}`)
	assert.Equal(t, int64(0), m.After, "subscribed after")
	ids, caughtUp := c.events("caught_up")
	want := []string{"1-0", "2-0", "3-0", "3-1", "3-2", "4-0", "4-1", "4-2"}
	assert.Truef(t, slices.Equal(ids, want) && caughtUp.Position == 4 && caughtUp.ID == "a", "%q, then %+v", ids, caughtUp)
	s.stamp(first, 1)
	ids = c.take(3)
	assert.Truef(t, slices.Equal(ids, []string{"5-0", "5-1", "5-2"}), "then %q", ids)
}

func TestASubscriptionSaysWhereATransitionIsWhole(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	c := s.dial()
	c.subscribe("a", `2`, `{"types":["parcel.stamp","parcel.weighed"]}`)
	for i, more := range []bool{true, false, true, false} {
		m := c.next()
		assert.Truef(t, m.Op == "event" && m.More == more, "message %d: %+v", i, m)
	}
}

func TestASubscriptionFromNowGetsOnlyWhatIsNew(t *testing.T) {
	s := newServer(t)
	first, second := s.someEvents()
	c := s.dial()
	m := c.subscribe("a", `"now"`, `{"instance":"`+first.String()+`","states":["packed"]}`)
	assert.Equal(t, int64(4), m.After, "subscribed after")
	m = c.next()
	assert.Truef(t, m.Op == "caught_up" && m.Position == 4, "%+v", m)
	s.stamp(second, 1)
	s.stamp(first, 1)
	ids := c.take(3)
	assert.Truef(t, slices.Equal(ids, []string{"6-0", "6-1", "6-2"}), "%q", ids)
}

func TestSubscription_Resumes(t *testing.T) {
	s := newServer(t)
	id := s.packed("1")
	stamped := later(func() bool {
		s.stamp(id, 60)
		return true
	})
	var got []string
	after, cuts := int64(0), 0
	for after < 61 {
		c := s.dial()
		c.subscribe("a", strconv.FormatInt(after, 10), `{}`)
		var pending []string
		for n := 0; n < 12 && after < 61; n++ { // then it is cut, wherever that is
			m := c.next()
			if m.Op == "caught_up" {
				continue
			}
			pending = append(pending, parseEvent(t, m.Event).ID)
			if !m.More {
				got, pending, after = append(got, pending...), nil, m.Position
			}
		}
		_ = c.ws.Close()
		cuts++
	}
	<-stamped
	want := []string{"1-0"}
	for position := 2; position <= 61; position++ {
		for _, ordinal := range []string{"-0", "-1", "-2"} {
			want = append(want, strconv.Itoa(position)+ordinal)
		}
	}
	assert.Truef(t, slices.Equal(got, want) && cuts >= 10, "%d cuts, %d events: %q", cuts, len(got), got)
}

func TestSubscriptions_OneConnection(t *testing.T) {
	s := newServer(t)
	first, _ := s.someEvents()
	c := s.dial()
	c.subscribe("weights", `"now"`, `{"types":["parcel.weighed"]}`)
	c.events("caught_up")
	c.subscribe("prices", `"now"`, `{"types":["parcel.priced"]}`)
	c.events("caught_up")
	s.stamp(first, 1)
	both := map[string]string{}
	for range 2 {
		m := c.next()
		both[m.ID] = parseEvent(t, m.Event).ID
	}
	assert.True(t, both["weights"] == "5-1" && both["prices"] == "5-2", both)
	c.send(`{"op":"unsubscribe","id":"weights"}`)
	m := c.next()
	assert.Truef(t, m.Op == "unsubscribed" && m.ID == "weights", "%+v", m)
	s.stamp(first, 1)
	ids := c.take(1)
	assert.Equalf(t, "6-2", ids[0], "after unsubscribing: %q", ids)
	c.subscribe("weights", `5`, `{"types":["parcel.weighed"]}`) // the id is free again
	ids = c.take(1)
	assert.Equalf(t, "6-1", ids[0], "after subscribing again: %q", ids)
}

func TestSubscription_Errors(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Stream.Subscriptions = 2 })
	s.someEvents()
	c := s.dial()
	c.subscribe("a", `4`, `{}`)
	c.events("caught_up")
	for _, text := range []string{
		`{"op":"subscribe","id":"a","after":"now"}`,
		`{"op":"subscribe","id":"b","after":5}`,
		`{"op":"unsubscribe","id":"b"}`,
	} {
		c.send(text)
		if m := c.next(); m.Op != "error" || m.Code != workflow.InvalidRequest || m.Detail == "" || m.ID == "" {
			t.Errorf("%s was answered with %+v", text, m)
		}
	}
	c.subscribe("b", `4`, `{"types":["other.begin"]}`)
	c.events("caught_up")
	c.send(`{"op":"subscribe","id":"c","after":"now"}`)
	m := c.next()
	assert.Truef(t, m.Op == "error" && m.ID == "c", "the third of two subscriptions was answered with %+v", m)
	s.packed("1")
	ids := c.take(1)
	assert.Equalf(t, "5-0", ids[0], "%q", ids)
}

func TestTenantsSeeTheirOwnLogOnly(t *testing.T) {
	s := newServer(t)
	s.someEvents()
	c := s.dial("Pawl-Tenant", "other")
	c.subscribe("a", `"start"`, `{}`)
	if ids, m := c.events("caught_up"); len(ids) != 0 || m.Position != 0 {
		t.Errorf("%q, %+v", ids, m)
	}
	s.packed("1")
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"x"}`, "Pawl-Tenant", "other").want(t, 201)
	m := c.next()
	e := parseEvent(t, m.Event)
	assert.Truef(t, e.Position == 1 && e.Source == "/pawl/other", "%+v", e)
}

func TestPingsAreAnsweredAndSent(t *testing.T) {
	var err error
	for every := 200 * time.Millisecond; every < 10*time.Second; every *= 2 {
		if err = pingPong(t, every); err == nil {
			return
		}
		t.Logf("with pings every %v: %v", every, err) // this machine may have been silent for as long as three of them
	}
	t.Error(err)
}

// pingPong answers pings for longer than a silent peer would be waited for, and
// returns why the connection has ended before.
func pingPong(t *testing.T, every time.Duration) error {
	t.Helper()
	s := newServer(t, func(c *api.Config) { c.Stream.PingEvery = every })
	c := s.dial()
	pings, pongs := make(chan struct{}, 100), make(chan string, 1)
	c.ws.SetPingHandler(func(data string) error {
		pings <- struct{}{}
		return c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Minute))
	})
	c.ws.SetPongHandler(func(data string) error { pongs <- data; return nil })
	if err := c.ws.WriteControl(websocket.PingMessage, []byte("hello"), time.Now().Add(time.Minute)); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.closed() }()
	for range 5 {
		select {
		case <-pings:
		case err := <-ended:
			return err
		}
	}
	select {
	case got := <-pongs:
		assert.Equal(t, "hello", got, "the pong says")
	case err := <-ended:
		return err
	}
	_ = c.ws.Close()
	<-ended
	s.waitForStreams(0)
	return nil
}

func TestASilentPeerIsForgotten(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Stream.PingEvery = 20 * time.Millisecond })
	c := s.dial()
	s.waitForStreams(0) // it never reads, so it answers no ping
	assert.Error(t, c.closed(), "the connection goes on")
}

func TestACloseIsAnswered(t *testing.T) {
	s := newServer(t)
	for _, code := range []int{websocket.CloseNormalClosure, websocket.CloseNoStatusReceived} {
		c := s.dial()
		c.subscribe("a", `"start"`, `{}`)
		require.NoError(t, c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Minute)))
		err := c.closed()
		assert.Truef(t, websocket.IsCloseError(err, code), "closing with %d was answered with %v", code, err)
	}
	s.waitForStreams(0)
}

func TestEveryConnectionIsToldThatTheNodeStops(t *testing.T) {
	s := newServer(t)
	var clients []*wsClient
	for range 20 {
		c := s.dial()
		c.subscribe("a", `"start"`, `{}`)
		c.events("caught_up")
		c.subscribe("b", `"now"`, `{}`)
		clients = append(clients, c)
	}
	stopped := make(chan error, 2)
	for range 2 {
		go func() { stopped <- s.api.Stop(t.Context()) }()
	}
	for _, c := range clients {
		err := c.closed()
		assert.True(t, websocket.IsCloseError(err, websocket.CloseGoingAway) && strings.Contains(err.Error(), "resume"), err)
	}
	for range 2 {
		assert.NoError(t, <-stopped, "stop")
	}
	assert.Equal(t, 0, s.api.OpenStreams(), "streams are left")
	s.get("/v1/stream", handshake...).wantProblem(t, 503, workflow.ShuttingDown)
}

func TestStreamsEndWhenTheEngineStopsBeforeThem(t *testing.T) {
	s := newServer(t)
	c := s.dial()
	c.subscribe("a", `"start"`, `{}`)
	events, cut := s.source("/v1/events")
	defer cut()
	s.engine.Stop(t.Context())
	err := c.closed()
	assert.Truef(t, websocket.IsCloseError(err, websocket.CloseGoingAway), "the connection ends with %v", err)
	events.until(func() bool { return false })
	s.waitForStreams(0)
}

// handshake is the headers that open a WebSocket.
var handshake = []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13",
	"Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}

func TestAHandshakeIsRefusedWithAProblem(t *testing.T) {
	s := newServer(t)
	good := handshake
	for name, c := range map[string]struct {
		headers []string
		status  int
		code    workflow.Code
	}{
		"another origin":      {append(slices.Clone(good), "Origin", "https://evil.example"), 403, workflow.Forbidden},
		"another subprotocol": {append(slices.Clone(good), "Sec-WebSocket-Protocol", "soap"), 400, workflow.InvalidRequest},
		"no upgrade":          {good[2:], 400, workflow.InvalidRequest},
		"a version of old": {append(slices.Clone(good[:4]), "Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
			400, workflow.InvalidRequest},
		"no key":       {good[:6], 400, workflow.InvalidRequest},
		"a bad tenant": {append(slices.Clone(good), "Pawl-Tenant", strings.Repeat("x", 100)), 400, workflow.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) { s.get("/v1/stream", c.headers...).wantProblem(t, c.status, c.code) })
	}
	s.waitForStreams(0)
	c := s.dialWith(&websocket.Dialer{}, "Origin", s.url) // its own page, and no subprotocol
	c.subscribe("a", `"start"`, `{}`)
}
