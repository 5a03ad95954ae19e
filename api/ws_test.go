package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"

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

func (s *server) dialWith(d *websocket.Dialer, headers ...string) *wsClient {
	s.t.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	ws, response, err := d.DialContext(s.t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/v1/stream", h)
	if err != nil {
		s.t.Fatalf("dial: %v, %v", err, response)
	}
	s.t.Cleanup(func() { _ = ws.Close() })
	return &wsClient{t: s.t, ws: ws}
}

func (c *wsClient) send(text string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// next reads a message.
func (c *wsClient) next() wsMessage {
	c.t.Helper()
	m, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
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
	if err := json.Unmarshal(text, &m, json.RejectUnknownMembers(true)); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	if err := toldAs("stream."+m.Op, text); err != nil {
		c.t.Errorf("the AsyncAPI document does not allow %s: %v", text, err)
	}
	return m, nil
}

// subscribe subscribes and reads the confirmation.
func (c *wsClient) subscribe(id, after, filter string) wsMessage {
	c.t.Helper()
	c.send(`{"op":"subscribe","id":"` + id + `","after":` + after + `,"filter":` + filter + `}`)
	m := c.next()
	if m.Op != "subscribed" || m.ID != id {
		c.t.Fatalf("subscribing %s was answered with %+v", id, m)
	}
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
		if m.Op != "event" {
			c.t.Fatalf("waiting for %s: %+v", until, m)
		}
		e := parseEvent(c.t, m.Event)
		if e.Position != m.Position {
			c.t.Errorf("the message says position %d, its event %d", m.Position, e.Position)
		}
		ids = append(ids, e.ID)
	}
}

// take reads n events.
func (c *wsClient) take(n int) []string {
	c.t.Helper()
	var ids []string
	for len(ids) < n {
		m := c.next()
		if m.Op != "event" {
			c.t.Fatalf("waiting for %d more events: %+v", n-len(ids), m)
		}
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
