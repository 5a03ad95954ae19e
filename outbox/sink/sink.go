package sink

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// Sink is a receiver of events, as the relay sees it. Making one reaches for
// nothing outside that has to be there: a service starts with its receivers
// down.
type Sink interface {
	// Deliver makes one attempt at each event and returns when it knows what
	// became of them. nil means that the receiver has them all, durably; otherwise
	// there is an entry for each event, in their order, which is nil for those that
	// the receiver has.
	//
	// The events are in the order of the log. After a failure, the later events of
	// its instance are [Held]; after one that concerns the receiver as a whole
	// ([Kind.Whole]), everything that was not tried yet is.
	//
	// Deliver may run several times at once, with no instance in two of them. It
	// returns soon after ctx ends; what was under way then has failed as
	// [Temporary], and may have arrived all the same. Neither side changes the
	// events, now or later.
	Deliver(ctx context.Context, events []transitions.Logged) []*Failure

	// Close lets go of the receiver. No Deliver may be running; one that comes
	// after it fails. Close may be called twice.
	Close(ctx context.Context) error
}

// Checker is a sink that can tell whether its receiver could be reached,
// without an event.
type Checker interface {
	// Check returns nil, or why events cannot be delivered now.
	Check(ctx context.Context) error
}

// Deduplicator is a sink whose receiver drops what it gets again, for a while.
type Deduplicator interface {
	// DuplicateWindow is how long after the receiver took an event it drops a
	// repetition; 0: it drops none, or that is not known. The relay waits no longer
	// than half of it between two attempts: the first may have arrived.
	DuplicateWindow() time.Duration
}
