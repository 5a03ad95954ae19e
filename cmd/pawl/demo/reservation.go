package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/workflow"
)

// The states of a reservation: a table in a restaurant, which is held for a
// guest, and not for long.
const (
	held     workflow.State = "held"
	taken    workflow.State = "taken"
	released workflow.State = "released"
)

// heldFor is how long. A real one would be kinder.
const heldFor = time.Second

// table is the data of a reservation.
type table struct {
	Guest string `json:"guest"`
}

// wish is the payload of "hold".
type wish struct {
	Number string `json:"number" validate:"required,max=20"`
	Guest  string `json:"guest" validate:"required,max=100"`
}

var reservations = workflow.Define("reservation", 1,
	workflow.Start("hold", held, func(_ *workflow.Call, t *table, w wish) error {
		t.Guest = w.Guest
		return nil
	}).BusinessKey(func(w wish) string { return w.Number }),
	workflow.On("take", workflow.From(held), taken, unchanged),
	workflow.On("release", workflow.From(held), released, unchanged),
).
	After("too-late", workflow.From(held), heldFor, "release").
	Final(taken, released)

func unchanged(*workflow.Call, *table, workflow.None) error { return nil }

// reservation is the chapter about what nobody sends: commands for later, and
// timers.
func (s *story) reservation(ctx context.Context) error {
	s.title("All in good time")
	const theTable = "/v1/workflows/reservation/keys/R-1"
	var later time.Time // by the clock that decides
	if err := s.stage.pool.QueryRow(ctx, "SELECT clock_timestamp() + interval '3 seconds'").Scan(&later); err != nil {
		return fmt.Errorf("ask the database for the time: %w", err)
	}
	hold := post("/v1/workflows/reservation/hold", "R-1", `{"number":"R-1","guest":"Ann"}`).
		with("Pawl-Not-Before", later.UTC().Format(time.RFC3339Nano))
	return s.play(ctx, []exchange{
		{
			tell:    "A table is to be held for Ann, but not before three seconds from now.",
			request: hold, status: 202,
			checks: []check{first, has("status", "pending", "it is accepted, and decided then")},
		},
		{
			tell:    "Nobody need stay for it. Who wants to can wait for its end, with the same command.",
			request: hold.with("Prefer", "wait=60"), status: 201,
			checks: []check{has("state", "held", "")},
		},
		{
			tell:    "Ann does not come. The workflow says what that means, and when.",
			request: get("/v1/events?type=reservation.release").with("Prefer", "wait=60"), status: 200,
			checks: []check{events(1, "a timer has released the table")},
		},
		{
			tell:    "Now she is there.",
			request: post(theTable+"/take", "R-1", "{}"), status: 409,
			checks: []check{refused("illegal_transition", "")},
		},
		{
			tell: "The timer is a command like any other: it is in the history, and there once, also where\n" +
				"several nodes see that it is due.",
			request: get(theTable + "/history"), status: 200,
			checks: []check{byTimer(heldFor)},
		},
	})
}

// byTimer asks a history for two entries, of which the second is the timer's.
func byTimer(after time.Duration) check {
	return check{fmt.Sprintf("%s after the table was held, by the timer", after), func(_ *story, a answer) error {
		var history struct {
			Entries []struct {
				Actor string    `json:"actor"`
				At    time.Time `json:"at"`
			} `json:"entries"`
		}
		if err := json.Unmarshal(a.body, &history); err != nil {
			return fmt.Errorf("the history cannot be read: %w", err)
		}
		e := history.Entries
		if len(e) != 2 || e[1].Actor != "pawl:timer" || e[1].At.Sub(e[0].At).Round(after/10) < after {
			return fmt.Errorf("the history is %s", a.body)
		}
		return nil
	}}
}
