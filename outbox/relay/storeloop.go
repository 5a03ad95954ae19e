package relay

import "time"

// storeLoop is when a holder stores what its flow has to store. One batch is under
// way at a time.
type storeLoop struct {
	replies    chan *storeReply
	sending    bool      // a batch is under way
	next       time.Time // the earliest time of the next one
	reload     bool      // which instances are aside should be read again
	reloadNext time.Time // not before
	revision   int64     // of the sink, as of the last reload
	knownMoves int64     // the revision up to which the moves of cursors are known
}

// reloadSoon lets it be read which instances are aside.
func (s *storeLoop) reloadSoon(now time.Time) {
	s.reload = true
	if soon := now.Add(reloadEvery); s.reloadNext.After(soon) {
		s.reloadNext = soon
	}
}

// storeDue is when the next batch should go; false: there is no reason for one yet.
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

// ending reports whether nothing is left but to give the lease back.
func (h *holder) ending() bool { return h.flow.draining && h.flow.drained() || h.calls.left }

// startStore sends a batch.
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

// takeReply takes in the database's answer to a batch.
func (h *holder) takeReply(r *storeReply, now time.Time) {
	f, s, b := h.flow, &h.store, r.batch
	s.sending = false
	switch {
	case r.err != nil:
		h.relay.config.Log.Warn("cannot store how far a sink is", "sink", h.sink.Name, "error", r.err)
		f.takeBack(b, now)
		s.reload = s.reload || b.reload
		s.next, s.reloadNext = now.Add(retryStore), now.Add(retryStore)
		h.lease.released = b.release && h.calls.stopping // there is no time to try again: the lease will run out
		return
	case r.lost:
		h.lose("another node has taken it over")
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
		if l := h.logs.of[c.window.tenant]; l != nil && l.logWindow == c.window {
			h.logs.forget(l)
		}
	}
	if b.reload {
		h.takeReload(r, now)
	}
	if r.revision != s.revision {
		s.reloadSoon(now)
	}
	for _, q := range b.fetch {
		f.addRows(q, r.rows[q], r.onHold[q], now)
	}
	if len(f.aside.full) > 0 && f.aside.freed { // there may be room for more of them; nothing but that and an operator makes any
		s.reload = true
	}
	h.logs.admitKept(now)
}

// takeReload takes in which instances are aside.
func (h *holder) takeReload(r *storeReply, now time.Time) {
	s := &h.store
	if r.revision != s.revision {
		h.flow.reread(now)
	}
	s.revision = r.revision
	h.flow.reloadAside(r.aside, r.full, now)
	if len(r.full) > 0 {
		s.reloadNext = now.Add(10 * reloadEvery)
	}
	for _, l := range h.logs.of {
		h.logs.start(l)
	}
}

// count counts what is stored, and logs what an operator should know.
func (h *holder) count(b *storeBatch) {
	h.relay.stats.stores.Add(1)
	h.relay.stats.delivered.Add(b.delivered)
	h.relay.stats.failed.Add(b.failed)
	h.relay.stats.parked.Add(b.parked)
	if b.parked > 0 {
		h.relay.config.Log.Warn("events could not be delivered and are dead letters now", "sink", h.sink.Name, "events", b.parked,
			"failure", b.failure)
	}
}
