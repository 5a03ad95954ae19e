package relay

import "github.com/pawlhq/pawl/transitions"

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

// advance counts the complete positions.
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
