package upgrades

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The workflows of the dumps. Their definitions must not change, because dumps have instances of them.

type trip struct {
	Number string `json:"number"`
	Notes  int    `json:"notes"`
}

type booking struct {
	Number string `json:"number"`
}

// long keeps the answers of a dump for as long as there are dumps.
var long = workflow.Horizons{Replay: 100 * 365 * 24 * time.Hour}

var errBroken = errors.New("the other side is down")

// world is the outside: it fails while a dump is created and works while that continues.
type world struct {
	broken bool
	gate   chan struct{} // what holds an attempt while the dump is made
}

// act is an attempt to do something there: what is held hangs, and the rest fails, while it is broken.
func (w *world) act(ctx context.Context, held bool, err error) error {
	switch {
	case !w.broken:
		return nil
	case !held:
		return err
	}
	select {
	case <-w.gate:
	case <-ctx.Done():
	}
	return errBroken
}

func (w *world) workflows() []workflow.Source {
	return []workflow.Source{w.trips(), offers(), tours(), legs(), w.rooms(1), w.rooms(2)}
}

// trips have activities: one that is paid for is held, retried or stuck; one that broke down is paid back.
func (w *world) trips() workflow.Source {
	none := workflow.None{}
	failed := func(*workflow.Call, *trip, workflow.Failure) error { return nil }
	done := func(*workflow.Call, *trip, workflow.None) error { return nil }
	slow := workflow.Retry{First: time.Hour}
	booked := workflow.From("booked")
	pay := func(name string, held bool) workflow.Part[trip] {
		return workflow.Do(name, booked, workflow.State(name+"-ing"), "paid",
			func(ctx context.Context, _ *workflow.Attempt, _ trip, _ workflow.None) (workflow.None, error) {
				return none, w.act(ctx, held, errBroken)
			}, done).OrElse("booked", failed).Retry(slow)
	}
	return workflow.Define("trip", 1,
		workflow.Start("book", "booked", func(_ *workflow.Call, d *trip, b booking) error { d.Number = b.Number; return nil }).
			BusinessKey(func(b booking) string { return b.Number }),
		workflow.On("note", booked, workflow.Stay, func(_ *workflow.Call, d *trip, _ booking) error {
			if w.broken && d.Number == "refusing" {
				return workflow.Refuse("not now")
			}
			d.Notes++
			return nil
		}).Receive("post", workflow.JSON(func(_ workflow.Message, b booking) (workflow.Address, booking, error) {
			return workflow.Address{BusinessKey: b.Number}, b, nil
		})),
		pay("pay-held", true), pay("pay-retried", false),
		workflow.Do("deposit", booked, "depositing", "secured",
			func(context.Context, *workflow.Attempt, trip, workflow.None) (workflow.None, error) { return none, nil }, done).
			OrElse("booked", failed).
			Undo(func(ctx context.Context, _ *workflow.Attempt, _ trip, _ workflow.None, _ *workflow.None) error {
				return w.act(ctx, false, errBroken)
			}).Retry(slow),
		workflow.Do("fly", workflow.From("secured"), "flying", "flown",
			func(ctx context.Context, _ *workflow.Attempt, _ trip, _ workflow.None) (workflow.None, error) {
				return none, w.act(ctx, false, workflow.Final(errBroken))
			}, done).OrElse("grounded", failed).Undoes("deposit"),
		workflow.Do("visa", booked, "asking", "allowed",
			func(ctx context.Context, _ *workflow.Attempt, _ trip, _ workflow.None) (workflow.None, error) {
				return none, w.act(ctx, false, errBroken)
			}, done).OrElse("booked", failed).AskOperator(),
	).Final("paid", "flown", "grounded", "allowed").Attr("number", func(d trip) string { return d.Number }).Keep(long)
}

// offers have a timer.
func offers() workflow.Source {
	nothing := func(*workflow.Call, *struct{}, workflow.None) error { return nil }
	return workflow.Define("offer", 1, workflow.Start("make", "open", nothing),
		workflow.On("lapse", workflow.From("open"), "lapsed", nothing)).
		After("lapses", workflow.From("open"), time.Hour, "lapse").Final("lapsed").Keep(long)
}

// tours have a leg, and end when it does.
func tours() workflow.Source {
	return workflow.Define("tour", 1,
		workflow.Start("plan", "touring", func(c *workflow.Call, _ *struct{}, _ workflow.None) error {
			c.Spawn(workflow.Child{Workflow: "leg", Transition: "begin", End: "arrive"})
			return nil
		}),
		workflow.On("arrive", workflow.From("touring"), "toured", func(*workflow.Call, *struct{}, workflow.Ended[struct{}]) error { return nil }),
	).Final("toured").Keep(long)
}

func legs() workflow.Source {
	nothing := func(*workflow.Call, *struct{}, workflow.None) error { return nil }
	return workflow.Define("leg", 1, workflow.Start("begin", "begun", nothing),
		workflow.On("finish", workflow.From("begun"), "finished", nothing)).
		Final("finished").Keep(long)
}

// room is the data of a room; version 1 has no floor.
type room struct {
	Number string `json:"number"`
	Floor  int    `json:"floor,omitzero"`
}

// rooms have two versions, of which the second one can be locked. One that is shut stays on the first; one that is cleaned has to wait.
func (w *world) rooms(version int) workflow.Source {
	open := workflow.State(map[int]string{1: "open", 2: "free"}[version])
	parts := []workflow.Part[room]{
		workflow.Start("build", open, func(_ *workflow.Call, d *room, b booking) error { d.Number = b.Number; return nil }).
			BusinessKey(func(b booking) string { return b.Number }),
		workflow.Do("clean", workflow.From(open), "cleaning", open,
			func(ctx context.Context, _ *workflow.Attempt, _ room, _ workflow.None) (workflow.None, error) {
				return workflow.None{}, w.act(ctx, true, errBroken)
			}, func(*workflow.Call, *room, workflow.None) error { return nil }).
			OrElse(open, func(*workflow.Call, *room, workflow.Failure) error { return nil }).Retry(workflow.Retry{First: time.Hour}),
		workflow.On("raze", workflow.From(open), "razed", func(*workflow.Call, *room, workflow.None) error { return nil }),
	}
	if version == 2 {
		parts = append(parts, workflow.On("lock", workflow.From(open), workflow.Stay, func(_ *workflow.Call, d *room, _ workflow.None) error {
			d.Floor++
			return nil
		}))
	}
	d := workflow.Define("room", version, parts...).Final("razed").Keep(long)
	if version == 2 {
		d.Migrate(workflow.FromVersion(1, func(old room) (room, error) {
			if old.Number == "shut" {
				return room{}, errors.New("it is shut")
			}
			return room{Number: old.Number, Floor: 1}, nil
		}).State("open", "free"))
	}
	return d
}

// crm is a receiver of events. While the world is broken it refuses those of tours, and cannot take those of offers.
type crm struct{ world *world }

func (c crm) Deliver(_ context.Context, events []transitions.Logged) []*sink.Failure {
	failures := make([]*sink.Failure, len(events))
	for i := range events {
		switch {
		case c.world.broken && events[i].Workflow == "tour":
			failures[i] = sink.Fail(sink.Permanent, nil, "no tours")
		case c.world.broken && events[i].Workflow == "offer":
			failures[i] = sink.Fail(sink.Temporary, nil, "no offers now")
			failures[i].RetryAfter = time.Hour
		}
	}
	return failures
}

func (c crm) Close(context.Context) error { return nil }
