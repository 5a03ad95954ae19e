package demo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api"
)

// patience bounds the wait for a message.
const patience = 20 * time.Second

// screen is a clerk's screen: a WebSocket that follows the log of fines.
type screen struct {
	story *story
	ws    *websocket.Conn
	last  int64    // the position up to which it has seen everything
	seen  []string // the ids of the events
}

// message is what the server sends.
type message struct {
	Op       string         `json:"op"`
	Position int64          `json:"position"`
	More     bool           `json:"more"` // the transition has another event
	Event    jsontext.Value `json:"event"`
}

// subscribe connects and follows fines after a position, or from "start".
func (s *story) subscribe(ctx context.Context, after string) (*screen, error) {
	dialer := websocket.Dialer{Subprotocols: []string{api.Subprotocol}, HandshakeTimeout: patience}
	ws, resp, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(s.url, "http")+"/v1/stream", nil)
	if err != nil {
		return nil, fmt.Errorf("open the stream: %w", err)
	}
	s.sent("GET /v1/stream, upgrade to WebSocket")
	s.received("%s", resp.Status)
	sc := &screen{story: s, ws: ws}
	from := after
	if _, err := strconv.ParseInt(after, 10, 64); err != nil {
		from = strconv.Quote(after)
	}
	ask := `{"op":"subscribe","id":"fines","after":` + from + `,"filter":{"workflow":"fine"}}`
	s.sent("%s", ask)
	if err := ws.WriteMessage(websocket.TextMessage, []byte(ask)); err != nil {
		sc.cut()
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	if err := sc.readUntil("subscribed"); err != nil {
		sc.cut()
		return nil, err
	}
	return sc, nil
}

// read returns the next message.
func (sc *screen) read() (message, error) {
	if err := sc.ws.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return message{}, err
	}
	_, text, err := sc.ws.ReadMessage()
	if err != nil {
		return message{}, fmt.Errorf("read the stream: %w", err)
	}
	sc.story.received("%s", text)
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return message{}, fmt.Errorf("a message of the stream cannot be read: %w", err)
	}
	return m, nil
}

// readUntil reads messages until one is of that kind. Others but events and
// word that the subscription has caught up are not expected.
func (sc *screen) readUntil(op string) error {
	for {
		m, err := sc.read()
		if err != nil {
			return err
		}
		switch m.Op {
		case "event":
			if err := sc.note(m); err != nil {
				return err
			}
		case op, "caught_up":
		default:
			return fmt.Errorf("the stream says %q, and should say %q", m.Op, op)
		}
		if m.Op == op {
			return nil
		}
	}
}

// note remembers an event.
func (sc *screen) note(m message) error {
	id, err := member(m.Event, "id")
	if err != nil {
		return err
	}
	if m.Position <= sc.last {
		return fmt.Errorf("position %d comes after %d", m.Position, sc.last)
	}
	sc.seen = append(sc.seen, id)
	if !m.More {
		sc.last = m.Position
	}
	return nil
}

// cut breaks the connection as a pulled cable does, without a close frame.
// Nobody is left to tell of an error.
func (sc *screen) cut() { _ = sc.ws.NetConn().Close() }
