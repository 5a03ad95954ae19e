package transitions

import (
	"cmp"
	"context"

	"github.com/pawlhq/pawl/tracing"
)

// Reply is what one command of several got: a receipt or an error.
type Reply struct {
	Receipt Receipt
	Err     error
}

// Logged is an event of the log with its CloudEvent, rendered once for all who
// read it.
type Logged struct {
	Event
	CloudEvent []byte

	// Delivery is the attempt to deliver it, where that is traced; a sink tells its receiver of [Logged.Hop].
	Delivery tracing.Context
}

// Hop is where in a trace the event is handed on: the attempt to deliver it, or else its transition.
func (l *Logged) Hop() tracing.Context { return cmp.Or(l.Delivery, l.Trace) }

// Batch is a piece of a tenant's log, in order and without gaps.
type Batch struct {
	Events []Logged
	// Last is the position up to which the reader has now seen everything. It
	// never stands between two events of one transition.
	Last int64
	// Head is the log's newest known position; Head-Last is how far behind the
	// reader is, in transitions.
	Head int64
}

// Follower reads a tenant's log from a position on. It is for one goroutine.
type Follower interface {
	// Next waits until there is something after what was read last. Its error
	// is the context's, or an *workflow.Error: EventsGone where retention has
	// removed what comes next, Unavailable, ShuttingDown.
	Next(ctx context.Context) (Batch, error)
	// Poll is Next without the wait: the batch is empty when everything is
	// read.
	Poll(ctx context.Context) (Batch, error)
	// Close lets go of the log. It may be called twice.
	Close()
}

// Watcher follows one command. It is for one goroutine.
type Watcher interface {
	// Next returns the command as it stands: the first time at once, then whenever
	// it has changed since. A command that is not in flight changes no more. Its
	// error is the context's, or an *workflow.Error: CommandNotFound, KeyExpired,
	// Unavailable, ShuttingDown.
	Next(ctx context.Context) (Record, error)
	// Close lets go of the command. It may be called twice.
	Close()
}
