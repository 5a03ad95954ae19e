package relay

import (
	"math"
	"slices"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
)

// rowChange is what a row of outbox_dead is to say.
type rowChange struct {
	item     *item
	status   inspect.DeadStatus
	kind     sink.Kind
	failure  string
	attempts int
	asOf     int64 // the revision of the sink up to which it holds
}

// anyRevision is for what holds as of any revision.
const anyRevision = math.MaxInt64

// pendingStore is what a flow has to store.
type pendingStore struct {
	delivered, failed int64
	failure           string       // the newest
	windows           []*logWindow // whose cursor can go on, or whose failure is another
	changes           []rowChange  // of rows that there are
}

// storeBatch is one transaction: what is to be stored, and what is asked.
type storeBatch struct {
	delivered, failed, parked int64
	failures                  int    // of the receiver as a whole, in a row
	failure                   string // the newest; "": no new one
	cursors                   []cursorChange
	newRows                   []rowChange
	changes                   []rowChange
	fetch                     []*instanceQueue // whose rows are to be read
	reload                    bool             // which instances are aside is to be read
	knownMoves                int64            // the revision up to which the moves of cursors are known
	release                   bool             // the lease is given back
	pause                     string           // the sink is paused, because of this; "": it is not
}

// cursorChange is what a row of outbox_cursor is to say.
type cursorChange struct {
	window   *logWindow
	position int64
	failure  string
}

// movesKnown is the revision up to which the moves of a tenant's cursor are known.
func (b *storeBatch) movesKnown(w *logWindow) int64 { return max(w.revision, b.knownMoves) }

// fetchQueues is how many queues' rows are read at once, at most.
const fetchQueues = 64

// mustStore reports whether a batch would say anything, and whether it should go at
// once.
func (f *flow) mustStore() (some, urgent bool) {
	p := &f.pending
	fetch := f.mayFetch() && f.unread.has()
	some = len(p.windows) > 0 || len(p.changes) > 0 || p.failed > 0 || p.delivered > 0 || fetch
	full := f.memory.reaches(f.policy.window/2, windowBytes/2)
	return some, fetch || full && len(p.windows) > 0
}

// mayFetch reports whether rows are to be read: not to be held in memory while the
// receiver takes nothing.
func (f *flow) mayFetch() bool {
	return !f.draining && (!f.circuit.open || f.items < 2*f.policy.window)
}

// takeBatch takes what there is to store.
func (f *flow) takeBatch() *storeBatch {
	p := &f.pending
	b := &storeBatch{delivered: p.delivered, failed: p.failed, failures: f.circuit.failures, failure: p.failure, changes: p.changes,
		pause: f.circuit.goneReason}
	for _, w := range p.windows {
		w.changed = false
		if w.dirty() {
			b.cursors = append(b.cursors, cursorChange{w, w.cursor(), w.failure})
			b.newRows = w.takePassed(b.newRows)
		}
	}
	f.pending = pendingStore{windows: p.windows[:0]}
	for _, c := range b.newRows {
		q := c.item.queue
		if q.unstored--; q.unstored == 0 && q.state == unstored {
			f.requestRows(q)
		}
	}
	for _, c := range slices.Concat(b.newRows, b.changes) {
		if c.status == inspect.DeadWaiting {
			b.parked++
		}
	}
	for len(b.fetch) < fetchQueues && f.mayFetch() {
		q := f.unread.pop()
		if q == nil {
			break
		}
		q.state = reading
		b.fetch = append(b.fetch, q)
	}
	return b
}

// noteStored takes in that a batch is stored.
func (f *flow) noteStored(b *storeBatch) {
	for _, c := range b.cursors {
		events, bytes := c.window.noteStored(c.position, c.failure)
		f.memory.events -= events
		f.memory.bytes -= bytes
	}
}

// takeBack takes a batch back of which it is not known whether it is stored. To store
// it twice does no harm, unless an operator has changed a row in between: what it says
// of rows holds only as long as no operator has changed the sink. If it was not stored,
// and is left out the second time, the events are delivered again.
func (f *flow) takeBack(b *storeBatch, now time.Time) {
	p := &f.pending
	p.delivered += b.delivered
	p.failed += b.failed
	if p.failure == "" {
		p.failure = b.failure
	}
	for i := range b.changes {
		b.changes[i].asOf = min(b.changes[i].asOf, b.knownMoves)
	}
	p.changes = append(b.changes, p.changes...)
	for _, c := range b.newRows {
		w := c.item.pending.window
		w.newRows = append(w.newRows, c)
		c.item.queue.unstored++
	}
	for _, c := range b.cursors {
		f.markChanged(c.window)
	}
	for _, q := range b.fetch {
		q.state = idle
		f.reschedule(q, now)
	}
}
