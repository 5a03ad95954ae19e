package relay

import (
	"math"
	"slices"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
)

type rowChange struct {
	item     *item
	status   inspect.DeadStatus
	kind     sink.Kind
	failure  string
	attempts int
	asOf     int64 // last revision of the sink for which it is valid
}

// anyRevision marks changes that are valid for any revision.
const anyRevision = math.MaxInt64

type storeBatch struct {
	windows                   []*logWindow // with a new cursor or failure; only in flow.pending
	delivered, failed, parked int64
	failures                  int    // of the receiver, in a row
	failure                   string // the last one; "": no new one
	cursors                   []cursorChange
	newRows                   []rowChange
	changes                   []rowChange
	fetch                     []*instanceQueue // queues whose rows to read
	reload                    bool             // read which instances are deferred
	knownMoves                int64            // revision up to which moved cursors are known
	release                   bool             // release the lease
	pause                     string           // reason for pausing the sink; "": do not pause
}

type cursorChange struct {
	window   *logWindow
	position int64
	failure  string
}

// movesKnown returns the revision up to which moves of a tenant's cursor are known.
func (b *storeBatch) movesKnown(w *logWindow) int64 { return max(w.revision, b.knownMoves) }

const fetchQueues = 64

// mustStore reports whether there is something to store, and whether it is urgent.
func (f *flow) mustStore() (some, urgent bool) {
	p := &f.pending
	fetch := f.mayFetch() && f.unread.has()
	some = len(p.windows) > 0 || len(p.changes) > 0 || p.failed > 0 || p.delivered > 0 || fetch
	full := f.memory.reaches(f.policy.window/2, windowBytes/2)
	return some, fetch || full && len(p.windows) > 0
}

// mayFetch reports whether rows may be read: not while the receiver fails and they would only use
// memory.
func (f *flow) mayFetch() bool {
	return !f.draining && (!f.circuit.open || f.items < 2*f.policy.window)
}

func (f *flow) takeBatch() *storeBatch {
	p := &f.pending
	b := *p
	b.windows, b.failures, b.pause = nil, f.circuit.failures, f.circuit.goneReason
	for _, w := range p.windows {
		w.changed = false
		if w.dirty() {
			b.cursors = append(b.cursors, cursorChange{w, w.cursor(), w.failure})
			b.newRows = w.takePassed(b.newRows)
		}
	}
	f.pending = storeBatch{windows: p.windows[:0]}
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
	return &b
}

func (f *flow) noteStored(b *storeBatch) {
	for _, c := range b.cursors {
		events, bytes := c.window.noteStored(c.position, c.failure)
		f.memory.events -= events
		f.memory.bytes -= bytes
	}
}

// requeueBatch requeues a batch whose outcome is unknown. Storing it twice is harmless: row changes are
// only valid as long as no operator has changed the sink. If the batch was not stored and a change
// is skipped the second time, its events are delivered again.
func (f *flow) requeueBatch(b *storeBatch, now time.Time) {
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
