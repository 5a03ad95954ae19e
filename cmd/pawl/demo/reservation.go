package demo

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// The states of a reservation: a table in a restaurant, which is held for a
// guest, and not for long.
const (
	held     workflow.State = "held"
	taken    workflow.State = "taken"
	released workflow.State = "released"
)

// table is the data of a reservation.
type table struct {
	Guest string `json:"guest"`
}

// wish is the payload of "hold".
type wish struct {
	Number string `json:"number" validate:"required,max=20"`
	Guest  string `json:"guest" validate:"required,max=100"`
}

// A real one would be held for longer than a second.
var reservations = workflow.Define("reservation", 1,
	workflow.Start("hold", held, func(_ *workflow.Call, t *table, w wish) error {
		t.Guest = w.Guest
		return nil
	}).BusinessKey(func(w wish) string { return w.Number }),
	workflow.On("take", workflow.From(held), taken, unchanged),
	workflow.On("release", workflow.From(held), released, unchanged),
).
	After("too-late", workflow.From(held), time.Second, "release").
	Final(taken, released)

func unchanged(*workflow.Call, *table, workflow.None) error { return nil }

// reservation is the chapter about what nobody sends: commands for later, and
// timers.
func (s *story) reservation(ctx context.Context) {
	s.title("All in good time")
	const theTable = "/v1/workflows/reservation/keys/R-1"
	var later time.Time // by the clock that decides
	s.fail(s.stage.pool.QueryRow(ctx, "SELECT clock_timestamp() + interval '3 seconds'").Scan(&later))
	hold := post("/v1/workflows/reservation/hold", "R-1", `{"number":"R-1","guest":"Ann"}`).
		with("Pawl-Not-Before", later.UTC().Format(time.RFC3339Nano))
	s.ask(ctx, "A table is to be held for Ann, but not before three seconds from now.", hold, 202,
		first, has("status", "pending", "it is accepted, and decided then"))
	s.ask(ctx, "Nobody need stay for it. Who wants to can wait for its end, with the same command.",
		hold.with("Prefer", "wait=60"), 201, has("state", "held", ""))
	s.ask(ctx, "Ann does not come. The workflow says what that means, and when.",
		get("/v1/events?type=reservation.release").with("Prefer", "wait=60"), 200, has("events.#", 1, "a timer has released the table"))
	s.ask(ctx, "Now she is there.", post(theTable+"/take", "R-1", "{}"), 409, has("code", "illegal_transition", ""))
	s.ask(ctx, "The timer is a command like any other: it is in the history, and there once, also where\n"+
		"several nodes see that it is due.", get(theTable+"/history"), 200,
		has("entries.#", 2, ""), has("entries.1.actor", "pawl:timer", "the table was released once, by the timer"))
}
