package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/workflow"
)

// Position is a position in the tenant's log after which to continue, or [Start] or [Now].
type Position int64

// Starting points without a position.
const (
	Start Position = -1 // the oldest stored event
	Now   Position = -2 // the next event
)

func (p Position) json() jsontext.Value {
	switch p {
	case Start:
		return jsontext.Value(`"start"`)
	case Now:
		return jsontext.Value(`"now"`)
	}
	return strconv.AppendInt(nil, int64(p), 10)
}

// Event is an event of the log.
type Event struct {
	wire.Event
	// Cursor is the position after which to continue: everything up to it was yielded. It is less than the event's position if more events
	// of the same transition follow, which then includes repetitions. Like positions, it is text in JSON.
	Cursor Position `json:"cursor,string"`
}

// Subscribe yields the events of the log after a position in order, each once, and waits for more. It continues on another node after a
// failure, and renews its credential before it expires. After the first message, including one without events, it is retried without limit,
// with delays up to Retry.Max; Config.Notify reports this. It ends with the context, the loop, or an error. An error is yielded last, with
// an event that only has the Cursor after which to continue. [workflow.EventsGone] means that retention removed the next events; the error
// has the Position of the next stored event, and the Cursor precedes it.
//
// Nothing is read ahead: a slow reader slows the server and loses nothing.
func (c *Client) Subscribe(ctx context.Context, after Position, f Filter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s := subscription{client: c, after: after, filter: f, yield: yield}
		t := trial{client: c}
		for {
			at := c.at.Load()
			f := s.follow(ctx, at, &t)
			if s.left {
				return
			}
			if !t.again(ctx, at, f) {
				s.end(f.error(ctx))
				return
			}
		}
	}
}

// end yields an error with the position after which to continue.
func (s *subscription) end(err *workflow.Error) {
	if err.Code == workflow.EventsGone && err.Position > 0 {
		s.after = Position(err.Position - 1)
	}
	s.yield(Event{Cursor: s.after}, err)
}

// subscription is a reader of the log over several connections.
type subscription struct {
	client *Client
	after  Position // start of the next connection
	filter Filter
	yield  func(Event, error) bool
	left   bool // the loop has ended

	position, number int64 // of the last yielded event
}

// Ids of messages.
const (
	subscriptionID = "log"
	credentialID   = "credential"
)

// follow reads the log over one connection. It returns why that ended.
func (s *subscription) follow(ctx context.Context, at int64, t *trial) *failed {
	l, f := s.client.dial(ctx, at)
	if f != nil {
		return f
	}
	running, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		l.close()
	}()
	if err := l.write(&wire.Message{Op: wire.Subscribe, ID: subscriptionID, After: s.after.json(), Filter: s.filter}); err != nil {
		return noResponse(err)
	}
	l.keepCredential(running)
	for !s.left {
		m, err := l.read()
		if err != nil {
			return s.broken(ctx, err)
		}
		if f := s.handle(ctx, l, m, t); f != nil {
			return f
		}
	}
	l.leave()
	return nil
}

// handle processes a message.
func (s *subscription) handle(ctx context.Context, l *link, m *wire.ServerMessage, t *trial) *failed {
	switch {
	case m.ID == credentialID:
		select {
		case l.said <- m:
		default: // no request is waiting
		}
	case m.Op == wire.OpSubscribed:
		s.after = Position(m.After)
	case m.Op == wire.OpEvent:
		var e Event
		if err := json.Unmarshal(m.Event, &e.Event, reading); err != nil {
			return noResponse(fmt.Errorf("cannot parse an event: %w", err))
		}
		_, digits, _ := strings.Cut(e.ID, "-")
		number, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return noResponse(fmt.Errorf("invalid event id %q", e.ID))
		}
		t.resetFailures()
		s.after = Position(e.Position)
		if m.More {
			s.after--
		}
		if e.Position < s.position || e.Position == s.position && number <= s.number { // an earlier connection delivered it
			return nil
		}
		s.position, s.number = e.Position, number
		e.Cursor = s.after
		s.left = !s.yield(e, nil)
		return nil
	case m.Op == wire.OpCaughtUp:
		t.resetFailures()
		s.after = max(s.after, Position(m.Position))
	case m.Op == wire.OpError && m.Code == workflow.EventsGone:
		return s.gone(ctx, m.Detail)
	case m.Op == wire.OpError:
		return failedWith(&problem{Code: m.Code, Detail: m.Detail})
	}
	return nil
}

// broken returns the failure for the end of a connection.
func (s *subscription) broken(ctx context.Context, err error) *failed {
	closed, ok := errors.AsType[*websocket.CloseError](err)
	if !ok {
		return noResponse(err)
	}
	because := func(code workflow.Code) *failed {
		return &failed{err: &workflow.Error{Code: code, Message: closed.Text}}
	}
	switch closed.Code {
	case wire.CloseGone:
		return s.gone(ctx, closed.Text)
	case wire.CloseEnded:
		return because(workflow.Unauthorized) // its source has another one
	case wire.CloseBadMessage, websocket.CloseMessageTooBig:
		return because(workflow.InvalidRequest)
	case wire.CloseSlow:
		f := because(workflow.TimedOut)
		f.again = true
		return f
	}
	return noResponse(err)
}

// gone requests the next stored position, which WebSocket messages do not have.
func (s *subscription) gone(ctx context.Context, detail string) *failed {
	q := url.Values{"after": {strconv.FormatInt(int64(s.after), 10)}, "limit": {"1"}}
	_, err := s.client.do(ctx, &call{method: http.MethodGet, path: "/v1/events", query: q})
	e, ok := errors.AsType[*workflow.Error](err)
	switch {
	case !ok:
		return &failed{again: true, err: workflow.Errorf(workflow.EventsGone, "%s", detail)}
	case e.Code == workflow.EventsGone:
		return &failed{err: e}
	}
	return &failed{err: &workflow.Error{Code: workflow.EventsGone, Message: detail, Cause: e}}
}
