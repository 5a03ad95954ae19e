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
