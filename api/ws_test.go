package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// wsMessage is any message of the server.
type wsMessage struct {
	Op       string              `json:"op"`
	ID       string              `json:"id"`
	After    int64               `json:"after"`
	Position int64               `json:"position"`
	More     bool                `json:"more"`
	Event    jsontext.Value      `json:"event"`
	Final    bool                `json:"final"`
	Command  *wire.CommandStatus `json:"command"`
	Code     workflow.Code       `json:"code"`
	Detail   string              `json:"detail"`
	Until    time.Time           `json:"until"`
}

// wsClient is a client of /v1/stream.
type wsClient struct {
	t  testing.TB
	ws *websocket.Conn
}

// dial opens a connection that ends with the test.
func (s *server) dial(headers ...string) *wsClient {
	s.t.Helper()
	return s.dialWith(&websocket.Dialer{Subprotocols: []string{api.Subprotocol}}, headers...)
}

// upgrade asks for a WebSocket.
func (s *server) upgrade(d *websocket.Dialer, headers ...string) (*websocket.Conn, *http.Response, error) {
	return d.DialContext(s.t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/stream", headerOf(headers))
}

func (s *server) dialWith(d *websocket.Dialer, headers ...string) *wsClient {
	s.t.Helper()
	ws, response, err := s.upgrade(d, headers...)
	require.NoError(s.t, err, response)
	s.t.Cleanup(func() { _ = ws.Close() })
	return &wsClient{t: s.t, ws: ws}
}

func (c *wsClient) send(text string) {
	c.t.Helper()
	require.NoError(c.t, c.ws.WriteMessage(websocket.TextMessage, []byte(text)))
}

// next reads a message.
func (c *wsClient) next() wsMessage {
	c.t.Helper()
	m, err := c.read()
	require.NoError(c.t, err)
	return m
}

func (c *wsClient) read() (wsMessage, error) {
	c.t.Helper()
	var m wsMessage
	if err := c.ws.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return m, err
	}
	_, text, err := c.ws.ReadMessage()
	if err != nil {
		return m, err
	}
	require.NoErrorf(c.t, json.Unmarshal(text, &m, json.RejectUnknownMembers(true)), "%s", text)
	assert.NoErrorf(c.t, toldAs("stream."+m.Op, text), "the AsyncAPI document does not allow %s", text)
	return m, nil
}

// subscribe subscribes and reads the confirmation.
func (c *wsClient) subscribe(id, after, filter string) wsMessage {
	c.t.Helper()
	c.send(`{"op":"subscribe","id":"` + id + `","after":` + after + `,"filter":` + filter + `}`)
	m := c.next()
	require.Truef(c.t, m.Op == "subscribed" && m.ID == id, "subscribing %s was answered with %+v", id, m)
	return m
}

// events reads until a message with this op and returns the ids of the events
// before it, and it.
func (c *wsClient) events(until string) ([]string, wsMessage) {
	c.t.Helper()
	ids := []string{}
	for {
		m := c.next()
		if m.Op == until {
			return ids, m
		}
		require.Equalf(c.t, "event", m.Op, "waiting for %s: %+v", until, m)
		e := parseEvent(c.t, m.Event)
		assert.Equal(c.t, e.Position, m.Position)
		ids = append(ids, e.ID)
	}
}

// take reads n events.
func (c *wsClient) take(n int) []string {
	c.t.Helper()
	var ids []string
	for len(ids) < n {
		m := c.next()
		require.Equalf(c.t, "event", m.Op, "waiting for more events: %+v", m)
		ids = append(ids, parseEvent(c.t, m.Event).ID)
	}
	return ids
}

// closed reads until the connection ends and returns why.
func (c *wsClient) closed() error {
	c.t.Helper()
	for {
		if _, err := c.read(); err != nil {
			return err
		}
	}
}
