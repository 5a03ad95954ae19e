package relay

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxReaders = 32              // tenants that are read at once
	maxWaiting = 32 * maxReaders // that wait for their turn; where there are more, no others are looked for
	maxKept    = 2 * maxReaders  // pieces that may wait for room while others read
)

// logReaders reads the logs of a sink's tenants, some at a time, and gives the flow
// what it has room for. Only the holder's goroutine uses it, but for what says
// otherwise.
type logReaders struct {
	relay   *Relay
	sink    *Sink
	flow    *flow
	signals *signalBox

	of      map[string]*tenantLog // by tenant
	queue   fifo[*tenantLog]      // that wait for a reader
	kept    []piece               // that wait for room
	reading int                   // readers at work

	pieces  chan piece
	reports chan report
	ctx     context.Context // of the readers; it has ended when nothing more is to be read
	stop    context.CancelFunc
	work    sync.WaitGroup // the readers

	contended atomic.Bool // logs wait for a reader; the readers ask
	hasRoom   atomic.Bool // more logs could be read; the finder asks
}

func newLogReaders(h *holder) *logReaders {
	r := &logReaders{relay: h.relay, sink: h.sink, flow: h.flow, signals: h.signals, of: map[string]*tenantLog{},
		pieces: make(chan piece), reports: make(chan report)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.hasRoom.Store(true)
	return r
}

// tenantLog is a tenant's log as it is read for a sink. The fields are the holder's,
// but for those that say otherwise.
type tenantLog struct {
	*logWindow
	head       atomic.Int64  // as the database said it: there is something up to there; readers ask
	announced  int64         // the head as a commit or a hint says
	reading    bool          // it has a reader
	holdsSlot  bool          // which is one of maxReaders
	stopReader func()        // nil: it never had one
	queued     bool          // it waits for a reader
	unloaded   bool          // until its next attempt is due
	admitted   chan struct{} // tells the reader that its piece is taken in
	failures   readFailures  // the readers', of which there is one at a time
}

func newTenantLog(w *logWindow) *tenantLog {
	return &tenantLog{logWindow: w, admitted: make(chan struct{}, 1)}
}

// hasMore reports whether there is something to read.
func (l *tenantLog) hasMore() bool { return max(l.head.Load(), l.announced) > l.read }

// noteLag takes in that a log goes on after the cursor, and lets it be read. One that
// was not known begins at the cursor.
func (r *logReaders) noteLag(lag tenantLag) {
	l := r.of[lag.tenant]
	if l == nil {
		l = newTenantLog(&logWindow{tenant: lag.tenant, revision: lag.revision, stored: lag.cursor, read: lag.cursor})
		r.of[lag.tenant] = l
		r.relay.stats.logs.Add(1)
	}
	l.head.Store(max(l.head.Load(), lag.head))
	r.start(l)
}

// mayLoad reports whether the logs of more tenants can be taken in.
func (r *logReaders) mayLoad() bool { return r.hasRoom.Load() && r.ctx.Err() == nil }

// forget takes a log out of memory of which everything is delivered and stored: when it
// grows its cursor is looked up. So memory does not grow with the tenants that there are.
func (r *logReaders) forget(l *tenantLog) {
	if r.of[l.tenant] == l && !l.reading && !l.holdsSlot && !l.queued && !l.unloaded && !l.hasMore() && l.atRest() {
		r.drop(l)
	}
}

// dropMoved drops the logs whose cursors an operator has moved, and returns the tenants
// whose cursors have to be looked up. No batch is under way.
func (r *logReaders) dropMoved(moved []tenantLag, now time.Time) (tenants []string) {
	for _, m := range moved {
		l := r.of[m.tenant]
		if l != nil && l.revision >= m.revision || !r.sink.serves(m.tenant) {
			continue
		}
		if l != nil {
			r.flow.discard(l.logWindow, now)
			r.drop(l)
		}
		tenants = append(tenants, m.tenant)
	}
	r.startQueued()
	return tenants
}

// drop takes a log out of memory whose window is discarded.
func (r *logReaders) drop(l *tenantLog) {
	if l.stopReader != nil {
		l.stopReader()
	}
	r.releaseSlot(l)
	r.setReading(l, false)
	r.kept = slices.DeleteFunc(r.kept, func(p piece) bool { return p.log == l })
	delete(r.of, l.tenant)
	r.relay.stats.logs.Add(-1)
}

// replace puts another log in the place of one whose window is discarded.
func (r *logReaders) replace(l *tenantLog, w *logWindow) *tenantLog {
	r.drop(l)
	next := newTenantLog(w)
	next.head.Store(l.head.Load())
	next.announced = l.announced
	r.of[w.tenant] = next
	r.relay.stats.logs.Add(1)
	return next
}

// unload takes the logs out of memory that do nothing but wait, until their next
// attempt is due, and reports whether that has made room.
func (r *logReaders) unload(now time.Time) (some bool) {
	list := r.flow.unloadable
	r.flow.unloadable = nil
	for _, u := range list {
		l := r.of[u.window.tenant]
		if l == nil || l.logWindow != u.window || r.flow.draining {
			continue
		}
		w, due := r.flow.unload(u, now)
		if w == nil {
			continue
		}
		some = true
		next := r.replace(l, w)
		next.unloaded = true
		time.AfterFunc(due.Sub(now), func() { r.signals.send(func(s *signals) { s.due = append(s.due, next) }) })
	}
	if some {
		r.admitKept(now)
		r.startQueued()
	}
	return some
}

// resume lets logs be read again that were unloaded.
func (r *logReaders) resume(list []*tenantLog) {
	for _, l := range list {
		l.unloaded = false
		r.start(l)
	}
}

// waiting reports whether logs wait for a reader.
func (r *logReaders) waiting() bool { return len(r.queue.rest()) > 0 }

// start lets a reader read a log if there is something to read, at once or in its
// turn.
func (r *logReaders) start(l *tenantLog) {
	if l.discarded || l.unloaded || l.reading || l.queued || r.flow.aside.full[l.tenant] || !l.hasMore() || r.ctx.Err() != nil {
		return
	}
	if r.reading >= maxReaders {
		l.queued = true
		r.queue.push(l)
		r.contended.Store(true)
		return
	}
	r.reading++
	l.holdsSlot = true
	r.setReading(l, true)
	after := l.read
	ctx, stop := context.WithCancel(r.ctx)
	l.stopReader = stop
	r.work.Go(func() {
		defer stop()
		(&reader{logs: r, log: l, last: after}).run(ctx)
	})
}

// startQueued lets the logs be read that wait for a reader.
func (r *logReaders) startQueued() {
	for r.waiting() && r.reading < maxReaders {
		next := r.queue.pop()
		next.queued = false
		r.start(next)
	}
	r.contended.Store(r.waiting())
}

// handleReport takes in what a reader says of itself.
func (r *logReaders) handleReport(p report) {
	l := p.log
	if l.discarded {
		return
	}
	if (p.event == readerRecovered || p.event == readerFailed) && l.blocker == nil {
		l.failure = p.failure
		r.flow.markChanged(l.logWindow)
	}
	if p.event == readerFailed || p.event == readerEnded {
		r.releaseSlot(l)
	}
	if p.event == readerWaited || p.event == readerEnded {
		r.setReading(l, false)
	}
	r.startQueued()
	r.start(l)
	r.forget(l)
}

// releaseSlot lets another log be read instead of this one.
func (r *logReaders) releaseSlot(l *tenantLog) {
	if l.holdsSlot {
		l.holdsSlot = false
		r.reading--
	}
}

// setReading notes whether a log has a reader.
func (r *logReaders) setReading(l *tenantLog, reads bool) {
	l.reading = reads
	r.signals.setReading(l.tenant, reads)
}

// admit gives the flow what a reader has read, as far as there is room, and keeps the
// rest until there is.
func (r *logReaders) admit(p piece, now time.Time) {
	if p.log.discarded {
		return // its reader was told to end
	}
	n := r.flow.admit(p.log.logWindow, p.events, p.wanted, now)
	if n == len(p.events) {
		p.log.admitted <- struct{}{}
		return
	}
	p.events = p.events[n:]
	if p.wanted != nil {
		p.wanted = p.wanted[n:]
	}
	r.kept = append(r.kept, p)
	if len(r.kept) <= maxKept { // it may be long until there is room
		r.releaseSlot(p.log)
		r.startQueued()
	}
}

// admitKept does so with everything that had to wait.
func (r *logReaders) admitKept(now time.Time) {
	kept := r.kept
	r.kept = nil
	for _, p := range kept {
		r.admit(p, now)
	}
}
