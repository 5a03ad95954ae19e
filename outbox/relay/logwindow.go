package relay

import (
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// pendingPosition is a position that the cursor has not passed, with the number of its events that
// are neither delivered nor deferred. The cursor stops before the first position with such events.
// Positions without events for the sink may share one.
type pendingPosition struct {
	window      *logWindow
	position    int64
	undelivered int
	events      int // in memory
	bytes       int // of the events
}

// logWindow is the part of a tenant's log between the stored cursor and the last read position.
type logWindow struct {
	tenant    string
	revision  int64              // of the sink when the cursor was read
	discarded bool               // an operator has moved the cursor since; it is not stored
	stored    int64              // stored cursor
	read      int64              // last position that was added
	events    int                // in memory
	positions []*pendingPosition // after the cursor, in order
	complete  int                // number of leading positions without undelivered events
	newRows   []rowChange        // of deferred events that the cursor may pass once stored

	headOnly bool        // no further events are added until the first one is delivered
	resumed  lastAttempt // state of that event before the log was unloaded

	failure       string // why the cursor does not advance
	storedFailure string // failure as last stored
	blocker       *item  // exhausted event that failure describes; nil: failure is about reading
	changed       bool   // is in flow.changed
}

// cursor returns the position up to which everything is complete.
func (w *logWindow) cursor() int64 {
	if w.complete == 0 {
		return w.stored
	}
	return w.positions[w.complete-1].position
}

func (w *logWindow) dirty() bool {
	return !w.discarded && (w.cursor() > w.stored || w.failure != w.storedFailure)
}

func (w *logWindow) advance() {
	for w.complete < len(w.positions) && w.positions[w.complete].undelivered == 0 {
		w.complete++
		w.headOnly = false
	}
}

// takePassed moves the new rows that the cursor passes to rows.
func (w *logWindow) takePassed(rows []rowChange) []rowChange {
	cursor, kept := w.cursor(), w.newRows[:0]
	for _, c := range w.newRows {
		if c.item.pending.position <= cursor {
			rows = append(rows, c)
		} else {
			kept = append(kept, c)
		}
	}
	clear(w.newRows[len(kept):])
	w.newRows = kept
	return rows
}

// noteStored records a stored cursor and drops the positions up to it. It returns their size.
func (w *logWindow) noteStored(position int64, failure string) (events, bytes int) {
	n := 0
	for n < w.complete && w.positions[n].position <= position {
		events += w.positions[n].events
		bytes += w.positions[n].bytes
		n++
	}
	clear(w.positions[:n])
	w.events -= events
	w.positions, w.complete = w.positions[n:], w.complete-n
	w.stored, w.storedFailure = position, failure
	return events, bytes
}

// passOver records that an unwanted event was read.
func (w *logWindow) passOver(position int64) {
	w.read = position
	if n := len(w.positions); n == 0 || w.positions[n-1].position != position && w.positions[n-1].events > 0 {
		w.positions = append(w.positions, &pendingPosition{window: w, position: position})
	} else if w.positions[n-1].events == 0 {
		w.positions[n-1].position = position
	}
}

// positionOf returns the entry of a position, which it creates if necessary.
func (w *logWindow) positionOf(position int64) *pendingPosition {
	w.read = position
	if n := len(w.positions); n > 0 && w.positions[n-1].position == position {
		if w.positions[n-1].events > 0 {
			return w.positions[n-1]
		}
		w.positions[n-1].position = position - 1 // the last entry was another event of this position
	}
	p := &pendingPosition{window: w, position: position}
	w.positions = append(w.positions, p)
	return p
}

// add adds an event to a position and returns its size.
func (w *logWindow) add(p *pendingPosition, e *transitions.Logged) (bytes int) {
	bytes = len(e.CloudEvent) + len(e.Payload)
	p.undelivered++
	p.events++
	p.bytes += bytes
	w.events++
	return bytes
}

// unloadable is a window that should leave memory until the next attempt of its first event.
type unloadable struct {
	window *logWindow
	head   *item
}

// lastAttempt is the state of the first event of an unloaded log.
type lastAttempt struct {
	position int64
	ordinal  int
	attempts int
	kind     sink.Kind
	failure  string
}

// requestUnload requests the unloading of an event's window. Only Block needs it: other policies
// defer events.
func (f *flow) requestUnload(head *item) {
	if f.policy.exhausted == Block && head.pending != nil {
		f.unloadable = append(f.unloadable, unloadable{head.pending.window, head})
	}
}

// unload discards a window and returns its replacement, which loads only the blocking event when
// that is due. Blocked tenants therefore use no memory, and events delivered behind the blocking
// one are repeated once. It returns nil if the window no longer only waits.
func (f *flow) unload(u unloadable, now time.Time) (next *logWindow, due time.Time) {
	w, q := u.window, u.head.queue
	first := len(w.positions) > 0 && w.positions[0] == u.head.pending
	if w.discarded || w.complete > 0 || !first || q.state != backingOff || q.fromLog[0] != u.head {
		return nil, due
	}
	e := u.head.event
	due = q.notBefore
	next = &logWindow{tenant: w.tenant, revision: w.revision, stored: w.stored, read: w.stored, failure: w.failure,
		storedFailure: w.storedFailure, headOnly: true,
		resumed: lastAttempt{e.Position, e.Ordinal, u.head.attempts, u.head.kind, u.head.failure}}
	f.discard(w, now)
	f.markChanged(next)
	return next, due
}

// discard drops the events of a window from memory; they are neither delivered nor stored. Calls in
// progress finish first, so that order holds: until then nothing else of their instances is
// delivered. It must not run during a batch.
func (f *flow) discard(w *logWindow, now time.Time) {
	w.discarded = true
	f.memory.events -= w.events
	for _, p := range w.positions {
		f.memory.bytes -= p.bytes
	}
	for _, c := range w.newRows {
		c.item.queue.unstored--
	}
	w.positions, w.newRows, w.events, w.complete = nil, nil, 0, 0
	for _, q := range f.queues {
		if q.tenant != w.tenant {
			continue
		}
		if q.state == inCall {
			q.stale = true
			if !q.logInCall {
				f.drop(&q.fromLog, 0)
			}
			continue
		}
		f.drop(&q.fromLog, 0)
		f.drop(&q.fromDead, 0)
		if !q.deferred && !q.hangs(now) {
			q.notBefore = time.Time{}
		}
		if q.state != reading && q.state != onHold {
			q.state = idle
			f.reschedule(q, now)
		}
	}
}
