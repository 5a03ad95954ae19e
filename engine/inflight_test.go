package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// parcel is a workflow whose activity does what a test says.
type parcel struct {
	Tracking string `json:"tracking,omitempty"`
}

type track struct {
	Number string `json:"number"`
}

func parcels(send func(ctx context.Context, a *workflow.Attempt) (track, error)) *workflow.Definition[parcel] {
	return workflow.Define("parcel", 1,
		workflow.Start("pack", "packed", func(*workflow.Call, *parcel, workflow.None) error { return nil }),
		workflow.Do("send", workflow.From("packed", "returned"), "sending", "sent",
			func(ctx context.Context, a *workflow.Attempt, _ parcel, _ workflow.None) (track, error) {
				return send(ctx, a)
			},
			func(_ *workflow.Call, p *parcel, t track) error {
				p.Tracking = t.Number
				return nil
			}).
			OrElse("returned", func(*workflow.Call, *parcel, workflow.Failure) error { return nil }).
			Retry(workflow.Retry{Attempts: 3, First: time.Millisecond}),
	).Final("sent")
}

// with gives an engine a workflow, and leases that do not last.
func with(w workflow.Source) func(*engine.Config) {
	return func(c *engine.Config) {
		c.Workflows = []workflow.Source{w}
		c.InFlight.Lease = time.Second
	}
}

func TestAnActivityIsDoneAndItsEndAwaited(t *testing.T) {
	var attempts atomic.Int64
	e := newEngine(t, database(t), with(parcels(func(_ context.Context, a *workflow.Attempt) (track, error) {
		if attempts.Add(1) == 1 {
			return track{}, errors.New("no van today")
		}
		return track{Number: a.Key[:8]}, nil
	})))
	r, err := e.Submit(t.Context(), transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	if err != nil {
		t.Fatal(err)
	}
	send := transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance}
	accepted, err := e.Submit(t.Context(), send)
	if err != nil || !accepted.InFlight() {
		t.Fatalf("%+v, %v", accepted, err)
	}
	done, err := e.Await(t.Context(), "", accepted.Record.Scope, "2")
	if err != nil {
		t.Fatal(err)
	}
	result, err := done.Result()
	if err != nil || result.State != "sent" || attempts.Load() != 2 {
		t.Errorf("%+v, %v after %d attempts", result, err, attempts.Load())
	}
	again, err := e.Submit(t.Context(), send)
	if err != nil || !again.Replayed || string(again.Body) != string(done.Body) {
		t.Errorf("the duplicate got %+v, %v; want %s", again, err, done.Body)
	}
}

// The lease is long, so that no heartbeat comes in time: the hint does.
func TestACancelOnAnotherNodeStopsTheAttemptAtOnce(t *testing.T) {
	pool := database(t)
	begun := make(chan bool, 1)
	send := func(ctx context.Context, _ *workflow.Attempt) (track, error) {
		begun <- true
		<-ctx.Done()
		return track{}, ctx.Err()
	}
	long := func(c *engine.Config) { c.InFlight.Lease = time.Minute }
	works := newEngine(t, pool, with(parcels(send)), long)
	asks := newEngine(t, pool, with(parcels(send)), long, func(c *engine.Config) { c.InFlight.Workers = -1 })
	r := submit(t, works, transitions.Command{Workflow: "parcel", Transition: "pack", Key: "1"})
	accepted := submit(t, works, transitions.Command{Workflow: "parcel", Transition: "send", Key: "2", Instance: r.Instance})
	<-begun
	if _, err := asks.Cancel(t.Context(), "", accepted.Record.Scope, "2", "ann"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // the first heartbeat comes after ten
	defer cancel()
	done, err := asks.Await(ctx, "", accepted.Record.Scope, "2")
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, done.Err(), workflow.CommandCancelled)
}
