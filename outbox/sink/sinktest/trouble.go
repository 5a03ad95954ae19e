package sinktest

import (
	"context"
	"testing"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// mustFail checks that some events failed, but not permanently. It returns their number.
func mustFail(t *testing.T, failures []*sink.Failure) (failed int) {
	t.Helper()
	for i, f := range failures {
		if f == nil {
			continue
		}
		failed++
		if f.Kind == sink.Permanent || f.Kind == sink.Gone {
			t.Errorf("event %d failed permanently: %v", i, f)
		}
	}
	if failed == 0 {
		t.Error("all events were reported as delivered")
	}
	return failed
}

func endedContext(t *testing.T, f Fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	events := newLog(tenant).events(3, 2)
	if failed := mustFail(t, deliver(ctx, t, f, events)); failed != len(events) {
		t.Errorf("%d of %d events failed", failed, len(events))
	}
	mustArrive(t, f, nil)
	mustDeliver(t, f, events)
	mustArrive(t, f, events)
}

// stalledReceiver causes repetitions: the receiver may have events without the sink's knowledge.
func stalledReceiver(t *testing.T, f Fixture) {
	if f.Stall == nil {
		t.Skip("the receiver cannot be stalled")
	}
	log := newLog(tenant)
	events := log.events(4, 2)
	mustDeliver(t, f, events)

	resume := f.Stall(t)
	defer resume()
	more := log.events(4, 2)
	// Long enough for every attempt to begin.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	mustFail(t, deliver(ctx, t, f, more))
	resume()

	deliverEventually(t, f, more)
	mustArrive(t, f, append(events, more...))
}

func outage(t *testing.T, f Fixture) {
	if f.Down == nil {
		t.Skip("the receiver cannot be stopped")
	}
	log := newLog(tenant)
	events := log.events(4, 3)
	mustDeliver(t, f, events)

	f.Down(t)
	more := log.events(4, 3)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), limit/3)
		failures := deliver(ctx, t, f, more)
		cancel()
		mustFail(t, failures)
		if checker, is := f.Sink.(sink.Checker); is {
			if err := checker.Check(t.Context()); err == nil {
				t.Error("Check succeeds without a receiver")
			}
		}
	}
	f.Up(t)

	deliverEventually(t, f, more)
	mustArrive(t, f, append(events, more...))
	if checker, is := f.Sink.(sink.Checker); is {
		if err := checker.Check(t.Context()); err != nil {
			t.Errorf("Check fails with the receiver running: %v", err)
		}
	}
}

func closed(t *testing.T, f Fixture) {
	log := newLog(tenant)
	events := log.events(4, 2)
	mustDeliver(t, f, events)
	for range 2 {
		if err := f.Sink.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	more := log.events(4, 2)
	if failed := mustFail(t, deliver(t.Context(), t, f, more)); failed != len(more) {
		t.Errorf("%d of %d events failed", failed, len(more))
	}
	mustArrive(t, f, events)
}
