package demo

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"

	"github.com/pawlhq/pawl/api"
)

const (
	createFine = "/v1/workflows/fine/create_fine"
	theFine    = "/v1/workflows/fine/keys/V2031"
	ofFines    = `{"workflow":"fine"}`
)

// fine is the chapter about following events without loss.
func (s *story) fine(ctx context.Context) {
	s.title("A traffic fine, followed over a WebSocket")
	s.narrate("A clerk's screen subscribes to everything that happens to fines, from the beginning\nof the log.")
	screen := s.subscribe(ctx, s.url, `"start"`, ofFines, api.Subprotocol)
	defer screen.cut()
	s.ask(ctx, "The violation is recorded.", post(createFine, "V2031-1",
		`{"case":"V2031","on":"2025-03-01","amount_cents":4000,"article":157,"vehicle_class":"A","officer":561}`), 201,
		first, has("state", "issued", ""))
	screen.readUntil("event")
	s.ask(ctx, "The notice is posted.", post(theFine+"/send_fine", "V2031-2", `{"on":"2025-03-20","expense_cents":1500}`), 200,
		first, has("state", "sent", ""))
	screen.readUntil("event")
	s.narrate("The connection breaks, without a word of goodbye.")
	screen.cut()
	s.held("the screen has seen everything up to position %d", screen.last)
	s.ask(ctx, "Meanwhile the notice is served: 60 days to pay or to appeal begin.",
		post(theFine+"/insert_fine_notification", "V2031-3", `{"on":"2025-04-01","notification_type":"P"}`), 200, first,
		has("state", "notified", ""))
	s.ask(ctx, "Raising the sum before they are over is refused in the words of the workflow.\n"+
		"A refusal changes nothing, so it has no event.",
		post(theFine+"/add_penalty", "V2031-4", `{"on":"2025-05-30","amount_cents":8000}`), 409, has("code", "guard_refused", ""))
	s.narrate(fmt.Sprintf("The screen is back and asks for what comes after position %d.", screen.last))
	again := s.subscribe(ctx, s.url, fmt.Sprint(screen.last), ofFines, api.Subprotocol)
	defer again.cut()
	again.readUntil("caught_up")
	s.ask(ctx, "It is paid, and the screen sees it happen.",
		post(theFine+"/payment", "V2031-6", `{"on":"2025-04-25","amount_cents":5500}`), 200, first, has("state", "paid", ""))
	again.readUntil("event")
	seen := slices.Concat(screen.seen, again.seen)
	s.ask(ctx, "Did the screen miss anything, or see anything twice? Compare it with the log.", get("/v1/events?workflow=fine"), 200,
		check{"the screen saw each of them once, in this order", func(a answer) error {
			var stored []string
			for i := range 4 {
				stored = append(stored, a.at(fmt.Sprintf("events.%d.id", i)))
			}
			if !slices.Equal(seen, stored) || a.at("events.#") != "4" {
				return fmt.Errorf("the screen saw %v, the log has %v", seen, stored)
			}
			return nil
		}})
}

// screen is a user's screen: a WebSocket that follows the log.
type screen struct {
	*story
	ws   *websocket.Conn
	last int64    // the position up to which it has seen everything
	seen []string // the ids of the events
}

// subscribe follows the events of a filter after a position.
func (s *story) subscribe(ctx context.Context, url, after, filter string, protocols ...string) *screen {
	sc := &screen{story: s}
	if s.err != nil {
		return sc
	}
	dialer := websocket.Dialer{Subprotocols: protocols, HandshakeTimeout: patience}
	ws, resp, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(url, "http")+"/v1/stream", nil)
	if err != nil {
		s.fail(fmt.Errorf("open the stream: %w", err))
		return sc
	}
	sc.ws = ws
	text := `{"op":"subscribe","id":"a","after":` + after + `,"filter":` + filter + `}`
	s.sent("GET /v1/stream, upgrade to WebSocket")
	s.sent("Sec-WebSocket-Protocol: %s", strings.Join(protocols, ", "))
	s.received("%s", resp.Status)
	s.sent("%s", text)
	s.fail(ws.WriteMessage(websocket.TextMessage, []byte(text)))
	sc.readUntil("subscribed")
	return sc
}

// readUntil reads messages until one is of that kind. Others but events and word that the subscription has caught up are not expected.
func (sc *screen) readUntil(op string) {
	for sc.err == nil {
		sc.fail(sc.ws.SetReadDeadline(time.Now().Add(patience)))
		_, text, err := sc.ws.ReadMessage()
		var m struct {
			Op       string         `json:"op"`
			Position int64          `json:"position"`
			Event    jsontext.Value `json:"event"`
		}
		if err == nil {
			sc.received("%s", text)
			err = json.Unmarshal(text, &m)
		}
		sc.fail(err)
		switch {
		case m.Op == "event" && m.Position <= sc.last:
			sc.fail(fmt.Errorf("position %d comes after %d", m.Position, sc.last))
		case m.Op == "event": // each transition has one
			sc.seen, sc.last = append(sc.seen, answer{body: m.Event}.at("id")), m.Position
		case m.Op != op && m.Op != "caught_up":
			sc.fail(fmt.Errorf("the stream says %q, and should say %q", m.Op, op))
		}
		if m.Op == op {
			return
		}
	}
}

// cut breaks the connection without a close frame, like an unplugged cable.
func (sc *screen) cut() {
	if sc.ws != nil {
		_ = sc.ws.NetConn().Close()
	}
}

// crowd is how many clients send the same command at the same moment.
const crowd = 50

// crowd is the chapter about concurrent requests with one key.
func (s *story) crowd(ctx context.Context) {
	s.title("Fifty at once")
	const theFine = "/v1/workflows/fine/keys/V2032"
	s.ask(ctx, "Another violation.", post(createFine, "V2032-1",
		`{"case":"V2032","on":"2025-03-02","amount_cents":4000,"article":7,"vehicle_class":"A","officer":562}`), 201, first)
	s.narrate(fmt.Sprintf("The same payment arrives %d times in the same moment.", crowd))
	payment := post(theFine+"/payment", "V2032-2", `{"on":"2025-03-03","amount_cents":1000}`)
	s.showRequest(payment)
	answers := make([]answer, crowd)
	told := make([]story, crowd) // each with its own error
	var clients sync.WaitGroup
	for i := range answers {
		told[i] = *s
		told[i].printer = &printer{err: s.err}
		clients.Go(func() { answers[i] = told[i].send(ctx, payment) })
	}
	clients.Wait()
	done := 0
	for i, a := range answers {
		s.fail(told[i].err)
		if a.status != 200 || !bytes.Equal(a.body, answers[0].body) {
			s.fail(fmt.Errorf("one answer is %d %s, another %d %s", answers[0].status, answers[0].body, a.status, a.body))
		}
		if a.header.Get("Idempotent-Replayed") == "" {
			done++
		}
	}
	s.received("%d times 200 %s", crowd, answers[0].body)
	if done != 1 {
		s.fail(fmt.Errorf("%d of %d were done, and one should be", done, crowd))
	}
	s.held("one was done, %d are replays, and all say the same", crowd-1)
	s.ask(ctx, "The fine has moved by one version, and one payment is on its account.", get(theFine), 200, has("version", 2, "one effect"))
}

// audit is the chapter about whether the past can be changed unseen.
func (s *story) audit(ctx context.Context) {
	s.title("The audit chain")
	fine := s.send(ctx, get(theFine)).at("id")
	verify := get("/v1/ops/verify")
	s.ask(ctx, "Every transition has an audit row that carries the hash of the one before. Is every\n"+
		"chain whole, and is the log without a gap?", verify, 200, has("intact", true, ""))
	s.narrate("An attacker with access to the database rewrites the past: it was not the officer who\nposted the notice.")
	s.rewrite(ctx, fine, "somebody else")
	s.ask(ctx, "The chain says where.", verify, 200, has("intact", false, ""), has("broken.#", 1, ""),
		has("broken.0.instance", fine, ""), has("broken.0.version", 2, "found: the row of version 2"))
	s.narrate("Put back what was there, so that you find everything in order.")
	s.rewrite(ctx, fine, "local")
	s.ask(ctx, "Once more.", verify, 200, has("intact", true, ""))
}

// rewrite changes the actor of an audit row behind Pawl's back.
func (s *story) rewrite(ctx context.Context, instance, actor string) {
	sql := fmt.Sprintf("UPDATE %s.audit SET actor = '%s' WHERE instance = '%s' AND version = 2", name, actor, instance)
	s.sent("%s", sql)
	if s.err != nil {
		return
	}
	tag, err := s.stage.pool.Exec(ctx, sql)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%d audit rows were changed, and one should be", tag.RowsAffected())
	}
	s.fail(err)
}
