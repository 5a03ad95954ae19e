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

// Position is a place in the log of the tenant: that of a transition, after which to go on, or [Start] or [Now].
type Position int64

// Where to begin without a position.
const (
	Start Position = -1 // with the oldest event that is there
	Now   Position = -2 // with the next one
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
	// Cursor is where to go on after this event: everything up to there was yielded. It is less than the position where more
	// events of the same transition follow, and they come again then. As JSON it is text, as the position is.
	Cursor Position `json:"cursor,string"`
}

// Subscribe yields the events of the log after a position, in order, each once, and waits for more. It goes on at another node where
// one is lost, and with a fresh credential before its own ends. Once something has come, be it that there is nothing new, it is tried
// again for as long as it takes, with pauses of up to Retry.Max: Config.Notify is told. It has no end but that of the context, of the
// loop, and an error, which is the last that it yields, beside an event of which only the Cursor is set: where to go on.
// [workflow.EventsGone] says that the events that come next were removed by retention; the Position of the error is that of the first
// one that is there, and the Cursor the position before it.
//
// Nothing is read ahead: a reader that takes its time is sent no more, and loses nothing.
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

// end yields an error, with where to go on.
func (s *subscription) end(err *workflow.Error) {
	if err.Code == workflow.EventsGone && err.Position > 0 {
		s.after = Position(err.Position - 1)
	}
	s.yield(Event{Cursor: s.after}, err)
}

// subscription is a reader of the log, over as many connections as it takes.
type subscription struct {
	client *Client
	after  Position // where the next connection begins
	filter Filter
	yield  func(Event, error) bool
	left   bool // the reader wants no more

	position, number int64 // of the newest event that was yielded
}

// subscriptionID and credentialID are how messages are told apart.
const (
	subscriptionID = "log"
	credentialID   = "credential"
)

// follow reads the log over one connection. It returns why that has ended.
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
		return unanswered(err)
	}
	l.keepCredential(running)
	for !s.left {
		m, err := l.read()
		if err != nil {
			return s.broken(ctx, err)
		}
		if f := s.take(ctx, l, m, t); f != nil {
			return f
		}
	}
	l.leave()
	return nil
}

// take does what a message asks for.
func (s *subscription) take(ctx context.Context, l *link, m *wire.ServerMessage, t *trial) *failed {
	switch {
	case m.ID == credentialID:
		l.answered(m)
	case m.Op == wire.OpSubscribed:
		s.after = Position(m.After)
	case m.Op == wire.OpEvent:
		return s.event(m, t)
	case m.Op == wire.OpCaughtUp:
		t.goesOn()
		s.after = max(s.after, Position(m.Position))
	case m.Op == wire.OpError && m.Code == workflow.EventsGone:
		return s.gone(ctx, m.Detail)
	case m.Op == wire.OpError:
		return failedWith(&problem{Code: m.Code, Detail: m.Detail})
	}
	return nil
}

// event yields an event, unless it came over a former connection.
func (s *subscription) event(m *wire.ServerMessage, t *trial) *failed {
	var e Event
	if err := json.Unmarshal(m.Event, &e.Event, reading); err != nil {
		return unanswered(fmt.Errorf("an event cannot be read: %w", err))
	}
	_, digits, _ := strings.Cut(e.ID, "-")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return unanswered(fmt.Errorf("an event has the id %q", e.ID))
	}
	t.goesOn()
	s.after = Position(e.Position)
	if m.More {
		s.after--
	}
	if e.Position < s.position || e.Position == s.position && number <= s.number {
		return nil
	}
	s.position, s.number = e.Position, number
	e.Cursor = s.after
	s.left = !s.yield(e, nil)
	return nil
}

// broken is what the end of a connection means.
func (s *subscription) broken(ctx context.Context, err error) *failed {
	closed, ok := errors.AsType[*websocket.CloseError](err)
	if !ok {
		return unanswered(err)
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
	return unanswered(err)
}

// gone asks which event is the first that is there. Nobody says so over WebSocket.
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
