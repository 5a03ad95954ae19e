package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	createFine = "/v1/workflows/fine/create_fine"
	theFine    = "/v1/workflows/fine/keys/V2031"
)

// fine is the chapter about following what happens, and losing nothing.
func (s *story) fine(ctx context.Context) error {
	s.title("A traffic fine, followed over a WebSocket")
	s.narrate("A clerk's screen subscribes to everything that happens to fines, from the beginning\nof the log.")
	screen, err := s.subscribe(ctx, "start")
	if err != nil {
		return s.failed(err)
	}
	defer screen.cut()
	if err := s.watched(ctx, screen, []exchange{
		{
			tell: "The violation is recorded.",
			request: post(createFine, "V2031-1",
				`{"case":"V2031","on":"2025-03-01","amount_cents":4000,"article":157,"vehicle_class":"A","officer":561}`), status: 201, as: "fine",
			checks: []check{first, has("state", "issued", "")},
		},
		{
			tell:    "The notice is posted.",
			request: post(theFine+"/send_fine", "V2031-2", `{"on":"2025-03-20","expense_cents":1500}`), status: 200,
			checks: []check{first, has("state", "sent", "")},
		},
	}); err != nil {
		return err
	}
	s.narrate("The connection breaks, without a word of goodbye.")
	screen.cut()
	s.held("the screen has seen everything up to position %d", screen.last)
	if err := s.unwatched(ctx); err != nil {
		return err
	}
	return s.resume(ctx, screen)
}

// unwatched happens while nobody listens.
func (s *story) unwatched(ctx context.Context) error {
	return s.play(ctx, []exchange{
		{
			tell:    "Meanwhile the notice is served: 60 days to pay or to appeal begin.",
			request: post(theFine+"/insert_fine_notification", "V2031-3", `{"on":"2025-04-01","notification_type":"P"}`), status: 200,
			checks: []check{first, has("state", "notified", "")},
		},
		{
			tell: "Raising the sum before they are over is refused in the words of the workflow.\n" +
				"A refusal changes nothing, so it is no event.",
			request: post(theFine+"/add_penalty", "V2031-4", `{"on":"2025-05-30","amount_cents":8000}`), status: 409,
			checks: []check{refused("guard_refused", "")},
		},
		{
			tell:    "Half of it is paid: the state stays, and what is still due is in the answer.",
			request: post(theFine+"/payment", "V2031-5", `{"on":"2025-04-20","amount_cents":2000}`), status: 200,
			checks: []check{first, has("state", "notified", "")},
		},
	})
}

// resume shows that a cut costs nothing.
func (s *story) resume(ctx context.Context, old *screen) error {
	s.narrate(fmt.Sprintf("The screen is back and asks for what comes after position %d.", old.last))
	screen, err := s.subscribe(ctx, fmt.Sprint(old.last))
	if err != nil {
		return s.failed(err)
	}
	defer screen.cut()
	if err := screen.readUntil("caught_up"); err != nil {
		return s.failed(err)
	}
	if err := s.watched(ctx, screen, []exchange{{
		tell:    "The rest is paid, and the screen sees it happen.",
		request: post(theFine+"/payment", "V2031-6", `{"on":"2025-04-25","amount_cents":3500}`), status: 200,
		checks: []check{first, has("state", "paid", "")},
	}}); err != nil {
		return err
	}
	s.narrate("Did the screen miss anything, or see anything twice? Compare it with the log.")
	events := get("/v1/events?workflow=fine")
	s.showRequest(events)
	a, err := s.send(ctx, events)
	if err != nil {
		return s.failed(err)
	}
	stored, err := eventIDs(a.body)
	if err != nil {
		return s.failed(err)
	}
	s.received("%d events: %s", len(stored), strings.Join(stored, ", "))
	if seen := slices.Concat(old.seen, screen.seen); !slices.Equal(seen, stored) || len(stored) != 5 {
		return s.failed(fmt.Errorf("the screen saw %v, the log has %v", seen, stored))
	}
	s.held("the screen saw each of them once, in this order")
	return nil
}

// watched plays exchanges whose events the screen must see.
func (s *story) watched(ctx context.Context, screen *screen, exchanges []exchange) error {
	for _, x := range exchanges {
		if err := s.play(ctx, []exchange{x}); err != nil {
			return err
		}
		if err := screen.readUntil("event"); err != nil {
			return s.failed(err)
		}
	}
	return nil
}

// eventIDs returns the ids of a page of the log.
func eventIDs(body []byte) ([]string, error) {
	var page struct {
		Events []jsontext.Value `json:"events"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("the page of events cannot be read: %w", err)
	}
	var ids []string
	for _, e := range page.Events {
		id, err := member(e, "id")
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
