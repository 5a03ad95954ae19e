// Package sink defines the interface between the outbox's relay and receivers of events: [Sink],
// its failures, and the ids by which receivers recognize repetitions.
//
// # Guarantees
//
// Delivery is at least once: an event is delivered until the sink reports that the receiver has it.
// Events of an instance arrive in log order. A repetition may follow a later event, but has the
// same id ([MessageID]); a receiver that remembers ids processes each event once, in order.
// Operators can break this order: a redriven dead letter follows later events of its instance
// unless the sink holds these, and moving a cursor forward skips events.
//
// # Responsibilities
//
// The relay reads the log, schedules deliveries and retries, counts attempts, parks undeliverable
// events and stores the cursor. A sink makes one attempt and reports the result of each event. It
// never retries and keeps no state except its connection.
//
// Packages webhook, jetstream, watermill and file implement sinks; package sinktest tests any
// other.
package sink

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// Sink delivers events to a receiver on behalf of the relay. Constructors do not require the
// receiver to be reachable.
type Sink interface {
	// Deliver makes one attempt at each event and returns their results. nil means that the
	// receiver has all events durably. Otherwise it returns one entry per event, in order, which is
	// nil for delivered events.
	//
	// Events are in log order. After a failure, the later events of its instance are [Held]; after
	// a failure of the whole receiver ([Kind.Whole]), all untried events are.
	//
	// Deliver is called concurrently, but never with the same instance. It returns soon after ctx
	// ends; events in progress then fail as [Temporary], although they may have arrived. Neither
	// side modifies the events.
	Deliver(ctx context.Context, events []transitions.Logged) []*Failure

	// Close closes the connection to the receiver. No Deliver may be running; later ones fail.
	// Close may be called twice.
	Close(ctx context.Context) error
}

// Checker is a sink that can check whether its receiver is reachable.
type Checker interface {
	// Check returns nil if events can be delivered.
	Check(ctx context.Context) error
}

// Deduplicator is a sink whose receiver drops repetitions for a while.
type Deduplicator interface {
	// DuplicateWindow returns how long the receiver recognizes a repetition; zero means never or
	// unknown. The relay waits at most half of it between two attempts, because the first may have
	// arrived.
	DuplicateWindow() time.Duration
}
