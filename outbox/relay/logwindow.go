package relay

import "github.com/pawlhq/pawl/transitions"

// pendingPosition is a position of a log that the cursor has not passed, and how many
// of its events are still to be delivered or set aside: the cursor stops before the
// first position that has any. Positions without events for the sink may share one.
type pendingPosition struct {
	window      *logWindow
	position    int64
	undelivered int
	events      int // in memory
	bytes       int // of them
}

// logWindow is the piece of a tenant's log between the stored cursor and what was
// read last.
type logWindow struct {
	tenant    string
	revision  int64              // of the sink, as of which the cursor was read
	discarded bool               // an operator has moved the cursor since; nothing of it is stored
	stored    int64              // the cursor
	read      int64              // the last position that was taken in
	events    int                // in memory
	positions []*pendingPosition // after the cursor, in order
	complete  int                // how many of these, from the first, have nothing undelivered
	newRows   []rowChange        // of events that the cursor may pass when they are rows

	headOnly bool        // nothing is taken in behind the first event until that is delivered
	resumed  lastAttempt // of that event, where the log was unloaded

	failure       string // why the cursor does not go on
	storedFailure string // what is stored of that
	blocker       *item  // the exhausted event that it is about; nil: it is about reading
	changed       bool   // the flow knows that it has something to store
}

// cursor is the position up to which everything is complete.
func (w *logWindow) cursor() int64 {
	if w.complete == 0 {
		return w.stored
	}
	return w.positions[w.complete-1].position
}

// dirty reports whether there is something to store.
func (w *logWindow) dirty() bool {
	return !w.discarded && (w.cursor() > w.stored || w.failure != w.storedFailure)
}

// atRest reports whether everything that was read is passed and stored, and nothing is
// in the cursor's way.
func (w *logWindow) atRest() bool {
	return !w.discarded && !w.changed && w.read == w.stored && len(w.positions) == 0 && len(w.newRows) == 0 &&
		w.failure == "" && w.storedFailure == ""
}

// advance counts the positions that are complete.
func (w *logWindow) advance() {
	for w.complete < len(w.positions) && w.positions[w.complete].undelivered == 0 {
		w.complete++
		w.headOnly = false
	}
}

// takePassed appends the new rows of events that the cursor passes to others.
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

// noteStored takes in that the cursor is stored, and drops what lies before it. It
// returns how much that was.
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

// passOver notes that an event was read that is not wanted.
func (w *logWindow) passOver(position int64) {
	w.read = position
	if n := len(w.positions); n == 0 || w.positions[n-1].position != position && w.positions[n-1].events > 0 {
		w.positions = append(w.positions, &pendingPosition{window: w, position: position})
	} else if w.positions[n-1].events == 0 {
		w.positions[n-1].position = position
	}
}

// positionOf finds or makes the position of an event that was read and is wanted.
func (w *logWindow) positionOf(position int64) *pendingPosition {
	w.read = position
	if n := len(w.positions); n > 0 && w.positions[n-1].position == position {
		if w.positions[n-1].events > 0 {
			return w.positions[n-1]
		}
		w.positions[n-1].position = position - 1 // another event of the position was passed over
	}
	p := &pendingPosition{window: w, position: position}
	w.positions = append(w.positions, p)
	return p
}

// add adds an event to a position. It returns its size.
func (w *logWindow) add(p *pendingPosition, e *transitions.Logged) (bytes int) {
	bytes = len(e.CloudEvent) + len(e.Payload)
	p.undelivered++
	p.events++
	p.bytes += bytes
	w.events++
	return bytes
}
