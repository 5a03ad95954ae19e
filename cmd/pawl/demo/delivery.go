package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// delivery is the chapter about another system that wants to know.
func (s *story) delivery(ctx context.Context) error {
	s.title("Somebody else's system")
	const sink = "/v1/ops/sinks/books"
	known, err := s.upToDate(ctx)
	if err != nil {
		return s.failed(err)
	}
	s.narrate("A bookkeeping gets every event of the orders by webhook, signed, at least once and in\n" +
		"the order of each. Now it has a fault, and refuses what is cancelled.")
	s.held("it has verified %d signatures so far", known)
	s.books.refuse("order.cancel")
	if err := s.play(ctx, []exchange{
		another("k-14"),
		{
			tell:    "... which is cancelled.",
			request: post("/v1/workflows/order/keys/c-1:k-14/cancel", "cancel-14", `{"reason":"a mistake"}`), status: 200,
			checks: []check{first},
		},
	}); err != nil {
		return err
	}
	if err := s.books.until(ctx, "it refuses", func() bool { return len(s.books.refused) > 0 }); err != nil {
		return s.failed(err)
	}
	if err := s.dead(ctx, sink+"/dead", 1); err != nil {
		return s.failed(err)
	}
	if err := s.play(ctx, []exchange{{
		tell:    "It said 422, so asking again would not help: the event is a dead letter. Nothing waits for it.",
		request: get(sink + "/dead"), status: 200,
		checks: []check{letters(1, "one event waits for a person")},
	}}); err != nil {
		return err
	}
	s.books.refuse("")
	if err := s.play(ctx, []exchange{{
		tell:    "The bookkeeping is mended, and an operator lets the event be delivered again.",
		request: request{method: http.MethodPost, path: sink + "/redrive", body: `{"all":true,"reason":"the account is there now"}`}, status: 200,
		checks: []check{has("changed", 1, "")},
	}}); err != nil {
		return err
	}
	arrived := func() bool { return s.books.entries[s.books.refused[0]] == "order.cancel" }
	if err := s.books.until(ctx, "the event arrives", arrived); err != nil {
		return s.failed(err)
	}
	s.held("it arrived, with the id that it had the first time: %s", s.books.refused[0])
	return nil
}

// upToDate waits until the bookkeeping has the orders so far, and says how many
// events it has: what was cancelled before is not to be refused.
func (s *story) upToDate(ctx context.Context) (known int, err error) {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) { // between two looks
		sinks, err := s.engine.Sinks(ctx, "")
		if err != nil {
			return 0, err
		}
		if len(sinks) == 1 && sinks[0].Lag == 0 {
			return s.books.known(), nil
		}
		if time.Since(begun) > patience {
			return 0, fmt.Errorf("the bookkeeping is not up to date: %+v", sinks)
		}
	}
}

// dead waits until a sink has so many dead letters: what was refused is stored a
// moment later.
func (s *story) dead(ctx context.Context, path string, n int) error {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) { // between two looks
		a, err := s.send(ctx, get(path))
		if err != nil {
			return err
		}
		if err = letters(n, "").holds(s, a); err == nil || time.Since(begun) > patience {
			return err
		}
	}
}

// letters asks a list of dead letters for so many.
func letters(n int, says string) check {
	return check{says, func(_ *story, a answer) error {
		var page struct {
			Dead []jsontext.Value `json:"dead"`
		}
		if err := json.Unmarshal(a.body, &page); err != nil {
			return fmt.Errorf("the dead letters cannot be read: %w", err)
		}
		if len(page.Dead) != n {
			return fmt.Errorf("there are %d dead letters, and should be %d: %s", len(page.Dead), n, a.body)
		}
		return nil
	}}
}
