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

// storeLoop schedules a holder's batches, one at a time.
type storeLoop struct {
	replies    chan *storeReply
	sending    bool      // a batch is in progress
	next       time.Time // earliest time of the next batch
	reload     bool      // read the deferred instances again
	reloadNext time.Time // earliest time of that
	revision   int64     // of the sink at the last reload
	knownMoves int64     // revision up to which moved cursors are known
}

func (s *storeLoop) reloadSoon(now time.Time) {
	s.reload = true
	if soon := now.Add(reloadEvery); s.reloadNext.After(soon) {
		s.reloadNext = soon
	}
}

// storeDue returns the time of the next batch, or false without a reason for one.
func (h *holder) storeDue() (time.Time, bool) {
	s := &h.store
	some, urgent := h.flow.mustStore()
	switch {
	case s.sending:
		return time.Time{}, false
	case h.ending():
		return s.next, true
	case s.reload && (!some || s.reloadNext.Before(s.next)):
		return s.reloadNext, true
	case urgent:
		return s.next.Add(fetchEvery - storeEvery), true
	}
	return s.next, some
}

// ending reports whether only the lease is left to be released.
func (h *holder) ending() bool { return h.flow.draining && h.flow.drained() || h.calls.left }

func (h *holder) startStore(now time.Time) {
	s, b := &h.store, h.flow.takeBatch()
	b.release, b.knownMoves = h.ending(), s.knownMoves
	b.reload = s.reload && !now.Before(s.reloadNext)
	if b.reload {
		s.reload, s.reloadNext = false, now.Add(reloadEvery)
	}
	s.sending, s.next = true, now.Add(storeEvery)
	limit := queryBudget
	if h.calls.stopping {
		limit = finalBudget
	}
	go func() { s.replies <- h.storeBatch(b, limit) }()
}

func (h *holder) handleReply(r *storeReply, now time.Time) {
	f, s, b := h.flow, &h.store, r.batch
	s.sending = false
	switch {
	case r.err != nil:
		h.relay.config.Log.Warn("cannot store the cursors of a sink", "sink", h.sink.Name, "error", r.err)
		f.requeueBatch(b, now)
		s.reload = s.reload || b.reload
		s.next, s.reloadNext = now.Add(retryStore), now.Add(retryStore)
		h.lease.released = b.release && h.calls.stopping // there is no time to retry: the lease will expire
		return
	case r.lost:
		h.loseLease("another node has taken over")
		return
	}
	f.noteStored(b)
	h.count(b)
	h.lease.until = r.sent.Add(h.relay.config.Lease)
	h.lease.released = b.release
	for _, tenant := range h.logs.dropMoved(r.moved, now) {
		h.wantLag(tenant)
	}
	s.knownMoves = r.revision
	for _, c := range b.cursors {
		if l := h.logs.byTenant[c.window.tenant]; l != nil && l.logWindow == c.window {
			h.logs.forget(l)
		}
	}
	if b.reload {
		if r.revision != s.revision {
			f.rereadRows(now)
		}
		s.revision = r.revision
		f.reloadDeferred(r.deferred, r.full, now)
		if len(r.full) > 0 {
			s.reloadNext = now.Add(10 * reloadEvery)
		}
		for _, l := range h.logs.byTenant {
			h.logs.start(l)
		}
	}
	if r.revision != s.revision {
		s.reloadSoon(now)
	}
	for _, q := range b.fetch {
		f.addRows(q, r.rows[q], r.onHold[q], now)
	}
	if len(f.deferred.full) > 0 && f.deferred.freed { // only this and operators make capacity for more
		s.reload = true
	}
	h.logs.admitKept(now)
}

func (h *holder) count(b *storeBatch) {
	h.relay.count(func(s *Stats) {
		s.Stored++
		s.Delivered += b.delivered
		s.Failed += b.failed
		s.Parked += b.parked
	})
	if b.parked > 0 {
		h.relay.config.Log.Warn("undeliverable events are now dead letters", "sink", h.sink.Name, "events", b.parked,
			"failure", b.failure)
	}
}
