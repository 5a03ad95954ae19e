package relay

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxReaders = 32              // concurrent readers
	maxWaiting = 32 * maxReaders // logs waiting for a reader; beyond this, no further logs are looked up
	maxKept    = 2 * maxReaders  // pieces waiting for memory while other logs are read
)

// logReaders reads the logs of a sink's tenants concurrently and adds them to the flow as memory
// allows. It belongs to the holder's goroutine unless noted.
type logReaders struct {
	relay   *Relay
	sink    *Sink
	flow    *flow
	signals *signalBox

	byTenant map[string]*tenantLog // by tenant
	queue    []*tenantLog          // waiting for a reader
	kept     []piece               // waiting for memory
	reading  int                   // active readers

	pieces  chan piece
	reports chan report
	ctx     context.Context // of the readers; cancelled when reading stops
	stop    context.CancelFunc
	work    sync.WaitGroup // the readers

	contended   atomic.Bool // logs wait for a reader; read by readers
	hasCapacity atomic.Bool // more logs can be loaded; read by the finder
}

func newLogReaders(h *holder) *logReaders {
	r := &logReaders{relay: h.relay, sink: h.sink, flow: h.flow, signals: h.signals, byTenant: map[string]*tenantLog{},
		pieces: make(chan piece), reports: make(chan report)}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.hasCapacity.Store(true)
	return r
}

// tenantLog is a tenant's log as read for a sink. Fields belong to the holder goroutine unless
// noted.
type tenantLog struct {
	*logWindow
	head       atomic.Int64  // last position according to the database; read by readers
	announced  int64         // last position according to a commit or a notification
	reading    bool          // has a reader
	holdsSlot  bool          // its reader counts towards maxReaders
	stopReader func()        // nil: never had a reader
	queued     bool          // waits for a reader
	unloaded   bool          // until its next attempt
	admitted   chan struct{} // signals the reader that its piece was added
	backoff    time.Duration // after a failed read; owned by its reader
}

func newTenantLog(w *logWindow) *tenantLog {
	return &tenantLog{logWindow: w, admitted: make(chan struct{}, 1)}
}

// hasMore reports whether the log has unread events.
func (l *tenantLog) hasMore() bool { return max(l.head.Load(), l.announced) > l.read }

// noteLag records that a log has events after its cursor and starts a reader. Unknown logs begin at
// the cursor.
func (r *logReaders) noteLag(lag tenantLag) {
	l := r.byTenant[lag.tenant]
	if l == nil {
		l = newTenantLog(&logWindow{tenant: lag.tenant, revision: lag.revision, stored: lag.cursor, read: lag.cursor})
		r.byTenant[lag.tenant] = l
		r.relay.logs.Add(1)
	}
	l.head.Store(max(l.head.Load(), lag.head))
	r.start(l)
}

// forget removes a fully delivered and stored log from memory, so that memory does not grow with
// the number of tenants. If the log grows, its cursor is looked up.
func (r *logReaders) forget(l *tenantLog) {
	delivered := !l.discarded && !l.changed && l.logWindow.read == l.stored && len(l.positions) == 0 && len(l.newRows) == 0 &&
		l.failure == "" && l.storedFailure == ""
	if r.byTenant[l.tenant] == l && !l.reading && !l.holdsSlot && !l.queued && !l.unloaded && !l.hasMore() && delivered {
		r.drop(l)
	}
}

// dropMoved drops the logs whose cursors an operator has moved and returns the tenants whose
// cursors must be looked up. It must not run during a batch.
func (r *logReaders) dropMoved(moved []tenantLag, now time.Time) (tenants []string) {
	for _, m := range moved {
		l := r.byTenant[m.tenant]
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

// drop removes a log whose window is discarded.
func (r *logReaders) drop(l *tenantLog) {
	if l.stopReader != nil {
		l.stopReader()
	}
	r.releaseSlot(l)
	r.setReading(l, false)
	r.kept = slices.DeleteFunc(r.kept, func(p piece) bool { return p.log == l })
	delete(r.byTenant, l.tenant)
	r.relay.logs.Add(-1)
}

// unload removes logs from memory that only wait for their next attempt, until it is due. It
// reports whether there were any.
func (r *logReaders) unload(now time.Time) (some bool) {
	list := r.flow.unloadable
	r.flow.unloadable = nil
	for _, u := range list {
		l := r.byTenant[u.window.tenant]
		if l == nil || l.logWindow != u.window || r.flow.draining {
			continue
		}
		w, due := r.flow.unload(u, now)
		if w == nil {
			continue
		}
		some = true
		r.drop(l)
		next := newTenantLog(w)
		next.head.Store(l.head.Load())
		next.announced, next.unloaded = l.announced, true
		r.byTenant[w.tenant] = next
		r.relay.logs.Add(1)
		time.AfterFunc(due.Sub(now), func() { r.signals.send(func(s *signals) { s.due = append(s.due, next) }) })
	}
	if some {
		r.admitKept(now)
		r.startQueued()
	}
	return some
}

// resume reads unloaded logs again.
func (r *logReaders) resume(list []*tenantLog) {
	for _, l := range list {
		l.unloaded = false
		r.start(l)
	}
}

// start starts a reader for a log with unread events, or queues the log.
func (r *logReaders) start(l *tenantLog) {
	if l.discarded || l.unloaded || l.reading || l.queued || r.flow.deferred.full[l.tenant] || !l.hasMore() || r.ctx.Err() != nil {
		return
	}
	if r.reading >= maxReaders {
		l.queued = true
		r.queue = append(r.queue, l)
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

func (r *logReaders) startQueued() {
	for len(r.queue) > 0 && r.reading < maxReaders {
		next := r.queue[0]
		r.queue = r.queue[1:]
		next.queued = false
		r.start(next)
	}
	r.contended.Store(len(r.queue) > 0)
}

// handleReport processes the report of a reader.
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

// releaseSlot lets another log be read.
func (r *logReaders) releaseSlot(l *tenantLog) {
	if l.holdsSlot {
		l.holdsSlot = false
		r.reading--
	}
}

// setReading records whether a log has a reader.
func (r *logReaders) setReading(l *tenantLog, reads bool) {
	l.reading = reads
	r.signals.setReading(l.tenant, reads)
}

// admit adds a piece to the flow as far as memory allows and keeps the rest.
func (r *logReaders) admit(p piece, now time.Time) {
	if p.log.discarded {
		return // its reader was stopped
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
	if len(r.kept) <= maxKept { // memory may stay full for long
		r.releaseSlot(p.log)
		r.startQueued()
	}
}

func (r *logReaders) admitKept(now time.Time) {
	kept := r.kept
	r.kept = nil
	for _, p := range kept {
		r.admit(p, now)
	}
}
