package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api"
)

// subscriber follows the log on one WebSocket connection. It reads frames from
// the socket itself: a thousand subscribers share the processor with the server
// that they measure, and must cost less than it does.
type subscriber struct {
	ws       *websocket.Conn // its socket is read by ourselves
	every    int64
	measured *atomic.Int64

	last       atomic.Int64 // the newest position that has come
	cut        atomic.Bool  // the server has ended it
	leaving    atomic.Bool
	reading    sync.WaitGroup
	delivered  int64
	lost       int64
	disordered int64
	latencies  []time.Duration
}

// subscribe connects and subscribes to everything that comes after head.
func subscribe(ctx context.Context, address string, head int64) (*subscriber, error) {
	dialer := websocket.Dialer{Subprotocols: []string{api.Subprotocol}}
	ws, response, err := dialer.DialContext(ctx, "ws://"+address+"/v1/stream", nil)
	if err != nil {
		if response != nil {
			err = fmt.Errorf("%w (status %d)", err, response.StatusCode)
		}
		return nil, err
	}
	// The server speaks only when it is spoken to, so that gorilla has read
	// nothing from the socket that it keeps for itself.
	s := &subscriber{ws: ws}
	s.last.Store(head)
	message := `{"op":"subscribe","id":"a","after":` + strconv.FormatInt(head, 10) + `}`
	if err := ws.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		_ = ws.NetConn().Close() // it is given up
		return nil, err
	}
	return s, nil
}

// read takes frames until the socket ends.
func (s *subscriber) read() {
	defer func() {
		if !s.leaving.Load() {
			s.cut.Store(true)
		}
	}()
	buf := make([]byte, 32<<10)
	for kept := 0; ; {
		n, err := s.ws.NetConn().Read(buf[kept:])
		if err != nil {
			return
		}
		now := time.Now()
		rest := buf[:kept+n]
		for {
			opcode, payload, after, whole := frame(rest)
			if !whole {
				break
			}
			switch opcode {
			case websocket.TextMessage:
				s.take(payload, now)
			case websocket.PingMessage:
				err = s.ws.WriteControl(websocket.PongMessage, payload, now.Add(time.Second))
			case websocket.CloseMessage:
				return
			}
			if err != nil {
				return
			}
			rest = after
		}
		if kept = copy(buf, rest); kept == len(buf) {
			return // a frame longer than any event
		}
	}
}

// frame splits the first frame off. A server does not mask (RFC 6455, section
// 5.1).
func frame(b []byte) (opcode int, payload, rest []byte, whole bool) {
	if len(b) < 2 {
		return 0, nil, b, false
	}
	header, length := 2, uint64(b[1])
	switch {
	case length == 126 && len(b) >= 4:
		header, length = 4, uint64(binary.BigEndian.Uint16(b[2:]))
	case length == 127 && len(b) >= 10:
		header, length = 10, binary.BigEndian.Uint64(b[2:])
	case length >= 126:
		return 0, nil, b, false
	}
	if uint64(len(b)-header) < length {
		return 0, nil, b, false
	}
	end := header + int(length)
	return int(b[0] & 0x0f), b[header:end], b[end:], true
}

var (
	eventPrefix = []byte(`{"op":"event",`)
	positionIs  = []byte(`"position":`)
	timeIs      = []byte(`"time":"`)
	quote       = []byte(`"`)
)

// take notes an event. Every transition of the measured workflow has one.
func (s *subscriber) take(message []byte, now time.Time) {
	if !bytes.HasPrefix(message, eventPrefix) {
		return // "subscribed" or "caught_up"
	}
	position := numberAfter(message, positionIs)
	last := s.last.Load()
	if position <= last {
		s.disordered++
		return
	}
	s.lost += position - last - 1
	s.last.Store(position)
	from := s.measured.Load()
	if from == 0 || position <= from {
		return
	}
	s.delivered++
	if position%s.every == 0 {
		_, text, _ := bytes.Cut(message, timeIs)
		text, _, _ = bytes.Cut(text, quote)
		if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
			s.latencies = append(s.latencies, now.Sub(at))
		}
	}
}

// numberAfter reads the number that follows a name, 0 where there is none.
func numberAfter(b, name []byte) (n int64) {
	_, digits, _ := bytes.Cut(b, name)
	for _, c := range digits {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}
