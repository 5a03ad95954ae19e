package sinktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

const limit = time.Minute

// tenant has a name that needs escaping.
const tenant = "north.süd *"

// deliver makes one attempt and validates its result and duration.
func deliver(ctx context.Context, t *testing.T, f Fixture, events []transitions.Logged) []*sink.Failure {
	t.Helper()
	begun := time.Now()
	failures := f.Sink.Deliver(ctx, events)
	if took := time.Since(begun); took > limit {
		t.Errorf("Deliver took %v", took)
	}
	if err := checkFailures(events, failures); err != nil {
		t.Error(err)
	}
	if err := checkUnchanged(events); err != nil {
		t.Error(err)
	}
	return failures
}

// mustDeliver makes one attempt that must not fail.
func mustDeliver(t *testing.T, f Fixture, events []transitions.Logged) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := all(deliver(ctx, t, f, events)); err != nil {
		t.Fatal(err)
	}
}

// deliverEventually retries until everything is delivered, like the relay.
func deliverEventually(t *testing.T, f Fixture, events []transitions.Logged) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		failures := deliver(ctx, t, f, events)
		if failures == nil {
			return
		}
		var rest []transitions.Logged
		for i, failure := range failures {
			if failure != nil {
				rest = append(rest, events[i])
			}
		}
		if events = rest; len(events) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("still not delivered after %v: %v", limit, all(failures))
		}
	}
}

// mustArrive checks that the receiver has exactly these events, each instance's in order.
func mustArrive(t *testing.T, f Fixture, events []transitions.Logged) {
	t.Helper()
	received := f.Received(t)
	arrived, err := checkReceived(events, received)
	if err != nil {
		t.Fatal(err)
	}
	if arrived != len(events) {
		t.Fatalf("%d of %d events have arrived", arrived, len(events))
	}
	if f.Dedupes && len(received) != arrived {
		t.Errorf("the receiver kept %d repetitions", len(received)-arrived)
	}
}

func eventsArrive(t *testing.T, f Fixture) {
	events := newLog(tenant).events(20, 5)
	mustDeliver(t, f, events)
	mustArrive(t, f, events)
}

func nothingToDeliver(t *testing.T, f Fixture) {
	if failures := f.Sink.Deliver(t.Context(), nil); len(failures) != 0 {
		t.Errorf("failures for no events: %v", failures)
	}
	mustArrive(t, f, nil)
}

func repetitions(t *testing.T, f Fixture) {
	events := newLog(tenant).events(5, 4)
	mustDeliver(t, f, events)
	mustDeliver(t, f, events)
	mustArrive(t, f, events)
}

func manyAtOnce(t *testing.T, f Fixture) {
	const lanes, batches = 8, 3
	log := newLog(tenant)
	var events []transitions.Logged
	var work sync.WaitGroup
	for range lanes {
		lane := log.events(10, 3)
		events = append(events, lane...)
		work.Go(func() {
			for n := range batches {
				part := lane[n*len(lane)/batches : (n+1)*len(lane)/batches]
				if err := all(f.Sink.Deliver(t.Context(), part)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	mustArrive(t, f, events)
}

func bigEvent(t *testing.T, f Fixture) {
	size := 512 << 10
	if f.Limit > 0 {
		size = f.Limit - 5<<10
	}
	log := newLog(tenant)
	events := log.transition(nil, uuid.New(), size)
	events = log.transition(events, uuid.New(), 0)
	mustDeliver(t, f, events)
	mustArrive(t, f, events)
}

func tooBigEvent(t *testing.T, f Fixture) {
	if f.Limit == 0 {
		t.Skip("the receiver takes events of any size")
	}
	log, a, b := newLog(tenant), uuid.New(), uuid.New()
	events := log.transition(nil, a, 10)
	events = log.transition(events, b, 10)
	tooBig := len(events)
	events = log.transition(events, a, f.Limit+5<<10)
	events = log.transition(events, b, 10)
	events = log.transition(events, a, 10)

	var rest []transitions.Logged
	for i, failure := range deliver(t.Context(), t, f, events) {
		switch mine := events[i].Instance == a && i >= tooBig; {
		case i == tooBig:
			if failure == nil || failure.Kind != sink.Permanent {
				t.Errorf("too large event: got %v, want a permanent failure", failure)
			}
		case mine:
			if failure == nil || failure.Kind != sink.Held {
				t.Errorf("event %d behind it: got %v, want it held", i, failure)
			}
			rest = append(rest, events[i])
		case failure != nil:
			t.Errorf("event %d: got %v, want it delivered", i, failure)
		}
	}
	if t.Failed() {
		return
	}
	// The event is parked; the others are delivered.
	mustDeliver(t, f, rest)
	mustArrive(t, f, append(events[:tooBig:tooBig], events[tooBig+1:]...))
}
