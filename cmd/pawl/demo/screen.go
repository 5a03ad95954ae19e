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
const patience = time.Minute

// screen is somebody's screen: a WebSocket that follows the log of fines, or a
// command.
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
	Command  jsontext.Value `json:"command"` // how it stands
	Final    bool           `json:"final"`   // and that is its end
}

// dial opens the stream.
func (s *story) dial(ctx context.Context) (*screen, error) {
	dialer := websocket.Dialer{Subprotocols: []string{api.Subprotocol}, HandshakeTimeout: patience}
	ws, resp, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(s.url, "http")+"/v1/stream", nil)
	if err != nil {
		return nil, fmt.Errorf("open the stream: %w", err)
	}
	s.sent("GET /v1/stream, upgrade to WebSocket")
	s.received("%s", resp.Status)
	return &screen{story: s, ws: ws}, nil
}

// subscribe connects and follows fines after a position, or from "start".
func (s *story) subscribe(ctx context.Context, after string) (*screen, error) {
	sc, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	from := after
	if _, err := strconv.ParseInt(after, 10, 64); err != nil {
		from = strconv.Quote(after)
	}
	err = sc.say(`{"op":"subscribe","id":"fines","after":` + from + `,"filter":{"workflow":"fine"}}`)
	if err == nil {
		err = sc.readUntil("subscribed")
	}
	if err != nil {
		sc.cut()
		return nil, err
	}
	return sc, nil
}

// watch connects and follows a command to its end, which it returns.
func (s *story) watch(ctx context.Context, scope, key string) (end answer, err error) {
	sc, err := s.dial(ctx)
	if err != nil {
		return answer{}, err
	}
	defer sc.cut()
	if err := sc.say(fmt.Sprintf(`{"op":"watch","id":"payment","scope":%q,"key":%q}`, scope, key)); err != nil {
		return answer{}, err
	}
	for {
		m, err := sc.read()
		if err != nil {
			return answer{}, err
		}
		if m.Op != "status" {
			return answer{}, fmt.Errorf("the stream says %q, and should say how the command stands", m.Op)
		}
		if m.Final {
			return answer{body: m.Command}, nil
		}
	}
}

// say sends a message.
func (sc *screen) say(text string) error {
	sc.story.sent("%s", text)
	if err := sc.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		return fmt.Errorf("send to the stream: %w", err)
	}
	return nil
}

// read returns the next message.
func (sc *screen) read() (m message, err error) {
	if err := sc.ws.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return message{}, err
	}
	_, text, err := sc.ws.ReadMessage()
	if err != nil {
		return message{}, fmt.Errorf("read the stream: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return message{}, fmt.Errorf("a message of the stream cannot be read: %w", err)
	}
	shown := string(text)
	if m.Op == "status" {
		if shown, err = brief(m.Command); err != nil {
			return message{}, err
		}
		shown = `{"op":"status",…,"command":` + shown + "}"
	}
	sc.story.received("%s", shown)
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
