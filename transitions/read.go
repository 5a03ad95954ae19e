package transitions

import (
	"cmp"
	"context"

	"github.com/pawlhq/pawl/tracing"
)

// Reply is the result of one of several commands: a receipt or an error.
type Reply struct {
	Receipt Receipt
	Err     error
}

// Logged is an event of the log with its CloudEvent, rendered once for all readers.
type Logged struct {
	Event
	CloudEvent []byte

	// Delivery is the trace context of the delivery, if traced; sinks pass on [Logged.Hop].
	Delivery tracing.Context
}

// Hop returns the trace context of the delivery, or of the transition.
func (l *Logged) Hop() tracing.Context { return cmp.Or(l.Delivery, l.Trace) }

// Batch is a part of a tenant's log, in order and without gaps.
type Batch struct {
	Events []Logged
	// Last is the position up to which the reader has seen everything. Transitions are never split.
	Last int64
	// Head is the last known position of the log; Head-Last is the reader's lag in transitions.
	Head int64
}

// Follower reads a tenant's log from a position. It is not safe for concurrent use.
type Follower interface {
	// Next waits for events after the last read. It returns the context's error or an
	// *workflow.Error: EventsGone if retention removed the next events, Unavailable, ShuttingDown.
	Next(ctx context.Context) (Batch, error)
	// Poll is like Next without waiting; the batch may be empty.
	Poll(ctx context.Context) (Batch, error)
	// Close releases the log. It may be called twice.
	Close()
}

// Watcher follows one command. It is not safe for concurrent use.
type Watcher interface {
	// Next returns the status of the command, at first immediately, then after each change. Completed commands do not change. It
	// returns the context's error or an *workflow.Error: CommandNotFound, KeyExpired, Unavailable, ShuttingDown.
	Next(ctx context.Context) (Record, error)
	// Close releases the command. It may be called twice.
	Close()
}

// PageBytes is the number of bytes of data at which a page of a list or of the log ends early, including the row that reaches it.
const PageBytes = 1 << 20

// firstRows is the size of the first read of a page, before the size of its rows is known.
const firstRows = 16

// NextRows returns how many rows to read next for a page of at most limit rows that has bytes and
// rows: as many as are expected to fill it.
func NextRows(bytes, rows, limit int) int {
	if rows == 0 {
		return min(firstRows, limit)
	}
	left := max(PageBytes-bytes, 0)
	return max(1, min(limit-rows, left*rows/max(bytes, 1)+1))
}

// PageFull reports whether a page of the history is full by entries or bytes.
func PageFull(list []Entry, limit int) bool {
	return len(list) >= limit || EntryBytes(list) >= PageBytes
}

// EntryBytes returns the number of bytes of data in entries.
func EntryBytes(list []Entry) (size int) {
	for i := range list {
		size += len(list[i].Payload) + len(list[i].Data)
	}
	return size
}
