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
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

func TestSubscription_FromStartAndNow(t *testing.T) {
	s := newServer(t)
	first, second := s.someEvents()
	c, now := s.dial(), s.dial()
	assert.Equal(t, api.Subprotocol, c.ws.Subprotocol(), "subprotocol")
	assert.Equal(t, int64(0), c.subscribe("a", `"start"`, `{}`).After)
	ids, caughtUp := c.events("caught_up")
	assert.Equal(t, []string{"1-0", "2-0", "3-0", "3-1", "3-2", "4-0", "4-1", "4-2"}, ids)
	assert.Truef(t, caughtUp.Position == 4 && caughtUp.ID == "a", "%+v", caughtUp)
	assert.Equal(t, int64(4), now.subscribe("a", `"now"`, `{"instance":"`+first.String()+`","states":["packed"]}`).After)
	_, caughtUp = now.events("caught_up")
	assert.Equal(t, int64(4), caughtUp.Position)
	s.stamp(second, 1)
	s.stamp(first, 1)
	assert.Equal(t, []string{"5-0", "5-1", "5-2", "6-0"}, c.take(4))
	assert.Equal(t, []string{"6-0", "6-1", "6-2"}, now.take(3))
	some := s.dial()
	some.subscribe("a", `2`, `{"types":["parcel.stamp","parcel.weighed"]}`)
	for i, more := range []bool{true, false, true, false} { // until the transition is whole
		m := some.next()
		assert.Truef(t, m.Op == "event" && m.More == more, "message %d: %+v", i, m)
	}
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

func TestSubscription_OwnTenant(t *testing.T) {
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

func TestPings(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Stream.PingEvery = time.Second })
	c := s.dial()
	pings, pongs := make(chan struct{}, 100), make(chan string, 1)
	c.ws.SetPingHandler(func(string) error { pings <- struct{}{}; return nil })
	c.ws.SetPongHandler(func(data string) error { pongs <- data; return nil })
	require.NoError(t, c.ws.WriteControl(websocket.PingMessage, []byte("hello"), time.Now().Add(time.Minute)))
	go func() { _ = c.closed() }()
	await.Receive(t, "a ping", pings)
	assert.Equal(t, "hello", await.Receive(t, "a pong", pongs))
}

func TestSilentPeerIsCut(t *testing.T) {
	s := newServer(t, func(c *api.Config) { c.Stream.PingEvery = 20 * time.Millisecond })
	c := s.dial()
	s.waitForStreams(0) // it never reads, so it answers no ping
	assert.Error(t, c.closed(), "the connection goes on")
}

func TestCloseIsAnswered(t *testing.T) {
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

func TestStopEndsEveryStream(t *testing.T) {
	s := newServer(t)
	status, _ := s.accepted("k")
	defer s.visit().signed("Ida")
	clients := []*wsClient{s.dial()}
	clients[0].watch("w", status.Scope, "k")
	for range 20 {
		c := s.dial()
		c.subscribe("a", `"start"`, `{}`)
		c.events("caught_up")
		clients = append(clients, c)
	}
	stream, cut := s.source("/v1/events")
	defer cut()
	stopped := make(chan error, 2)
	for range 2 {
		go func() { stopped <- s.api.Stop(t.Context()) }()
	}
	for i, c := range clients {
		err := c.closed()
		assert.True(t, websocket.IsCloseError(err, websocket.CloseGoingAway) && (i == 0 || strings.Contains(err.Error(), "resume")), err)
	}
	stream.until(func() bool { return false })
	assert.True(t, stream.ended)
	for range 2 {
		assert.NoError(t, <-stopped, "stop")
	}
	assert.Equal(t, 0, s.api.OpenStreams(), "streams are left")
	s.get("/v1/stream", handshake...).wantProblem(t, 503, workflow.ShuttingDown)
}

func TestStreamsEndWithEngine(t *testing.T) {
	s := newServer(t)
	c := s.dial()
	c.subscribe("a", `"start"`, `{}`)
	c.events("caught_up")
	s.post("/v1/workflows/parcel/pack", "k", `{"to":"Wien"}`, "Pawl-Not-Before", inAnHour()).want(t, 202)
	c.watch("w", "parcel:pack", "k")
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

func TestHandshakeIsChecked(t *testing.T) {
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
