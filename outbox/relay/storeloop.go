package relay

import "time"

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
		h.handleReload(r, now)
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

func (h *holder) handleReload(r *storeReply, now time.Time) {
	s := &h.store
	if r.revision != s.revision {
		h.flow.rereadRows(now)
	}
	s.revision = r.revision
	h.flow.reloadDeferred(r.deferred, r.full, now)
	if len(r.full) > 0 {
		s.reloadNext = now.Add(10 * reloadEvery)
	}
	for _, l := range h.logs.byTenant {
		h.logs.start(l)
	}
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
