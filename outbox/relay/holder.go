package relay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	storeEvery  = 100 * time.Millisecond // minimum, while the window has capacity
	fetchEvery  = 5 * time.Millisecond   // minimum, while rows must be read
	retryStore  = time.Second            // before a failed batch is retried
	reloadEvery = time.Second            // minimum
	stopGrace   = 5 * time.Second        // for calls to end after their context
)

// Causes that end the context of a call.
var (
	errLost     = errors.New("another node may have taken over the sink")
	errStopping = errors.New("this node is stopping")
	errTimeout  = errors.New("the call took too long")
)

// holder delivers to a sink while this node holds the sink's lease. One goroutine (run) makes all
// decisions; others read the logs, call the sink, store batches and send it their results.
type holder struct {
	relay   *Relay
	sink    *Sink
	flow    *flow
	lease   sinkLease
	calls   sinkCalls
	logs    *logReaders
	store   storeLoop
	signals *signalBox
	wanted  lagRequests
}

type sinkLease struct {
	token    int64       // fencing token: the newest holds the lease
	until    time.Time   // valid at least until then
	lost     atomic.Bool // another node may hold it
	released bool        // this node released it
}

func newHolder(r *Relay, s *Sink, token, revision int64, until time.Time) *holder {
	h := &holder{relay: r, sink: s, flow: newFlow(s.policy()), calls: sinkCalls{results: make(chan callResult, s.Calls)},
		signals: newSignalBox(),
		store:   storeLoop{replies: make(chan *storeReply, 1), reload: true, knownMoves: revision}, wanted: lagRequests{tenants: map[string]bool{}, missed: true}}
	h.calls.ctx, h.calls.cancel = context.WithCancelCause(context.Background())
	h.lease.token, h.lease.until = token, until
	h.logs = newLogReaders(h)
	return h
}

func (h *holder) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !h.isDone() {
		h.startWork(time.Now())
		timer.Reset(h.untilNext(time.Now()))
		select {
		case p := <-h.logs.pieces:
			h.logs.admit(p, time.Now())
		case r := <-h.logs.reports:
			h.logs.handleReport(r)
		case r := <-h.calls.results:
			h.handleResult(r, time.Now())
		case r := <-h.store.replies:
			h.handleReply(r, time.Now())
		case <-h.signals.poked:
			h.handleSignals()
		case <-h.calls.grace:
			h.calls.left = h.flow.calls.open > 0
		case <-timer.C:
		}
	}
	h.logs.stop()
	h.calls.cancel(errStopping)
	h.logs.work.Wait()
	h.relay.logs.Add(-int64(len(h.logs.byTenant)))
	if open := h.flow.calls.open; open > 0 {
		h.relay.config.Log.Warn("calls of a sink ignore their cancellation", "sink", h.sink.Name, "calls", open)
	}
}

func (h *holder) isDone() bool {
	calls := &h.flow.calls
	return (calls.open == calls.abandoned || h.calls.left) && !h.store.sending && (h.lease.lost.Load() || h.lease.released)
}

func (h *holder) startWork(now time.Time) {
	f := h.flow
	switch {
	case h.lease.lost.Load():
		return
	case now.After(h.lease.until):
		h.loseLease("the lease could not be renewed in time")
		return
	case f.circuit.goneReason != "" && !f.draining:
		h.relay.config.Log.Warn("pausing a sink whose receiver refuses all further events", "sink", h.sink.Name, "answer", f.circuit.goneReason)
		h.drain()
	}
	h.startCalls(now)
	if f.stalled() {
		f.freeMemory(len(h.logs.queue) > 0, now)
	}
	if h.logs.unload(now) {
		h.startCalls(now)
	}
	if at, ok := h.storeDue(); ok && !now.Before(at) {
		h.startStore(now)
	}
	if room := len(h.logs.queue) < maxWaiting; h.logs.hasCapacity.Swap(room) != room && room {
		h.relay.lags.loop.Wake()
	}
}

// untilNext returns the time until something can be done without a signal.
func (h *holder) untilNext(now time.Time) time.Duration {
	next := h.lease.until.Add(time.Millisecond)
	sooner := func(at time.Time) {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	f := h.flow
	if !f.draining {
		sooner(f.timers.next())
	}
	if f.circuit.open {
		sooner(f.circuit.retryUntried)
		sooner(f.circuit.retry)
	}
	if at, ok := h.storeDue(); ok {
		sooner(at)
	}
	return max(next.Sub(now), time.Millisecond)
}

func (h *holder) handleSignals() {
	s := h.signals.takeAll()
	if s.until.After(h.lease.until) {
		h.lease.until = s.until
	}
	if s.lost {
		h.loseLease("another node has taken over")
	}
	if s.drain {
		h.drain()
	}
	if s.stop && !h.calls.stopping {
		h.drain()
		h.calls.stopping = true
		h.calls.cancel(errStopping)
		h.calls.grace = time.After(stopGrace)
	}
	if s.revision > h.store.revision {
		h.store.reloadSoon(time.Now())
	}
	for _, lag := range s.lagging {
		if h.logs.byTenant[lag.tenant] == nil && lag.revision < h.store.knownMoves {
			h.wantLag(lag.tenant) // the cursor may have moved since it was read
		} else {
			h.logs.noteLag(lag)
		}
	}
	for tenant, head := range s.confirmed {
		if h.logs.byTenant[tenant] != nil {
			h.logs.noteLag(tenantLag{tenant: tenant, head: head})
		} else {
			h.wantLag(tenant)
		}
	}
	h.logs.resume(s.due)
	h.abandon(s.late, time.Now())
	for tenant, head := range s.heads {
		if l := h.logs.byTenant[tenant]; l != nil {
			l.announced = max(l.announced, head)
			h.logs.start(l)
		} else {
			h.wantLag(tenant)
		}
	}
}

// wantLag requests the cursor of a tenant whose log has grown. While the receiver is down this can
// wait for the next poll.
func (h *holder) wantLag(tenant string) {
	h.wanted.request(tenant, h.logs.hasCapacity.Load())
	if !h.flow.circuit.open {
		h.relay.lags.loop.Wake()
	}
}

// drain finishes the work in progress, then releases the lease.
func (h *holder) drain() {
	h.logs.stop()
	h.flow.drain(time.Now())
}

// loseLease stops the work for the sink without further statements.
func (h *holder) loseLease(why string) {
	if h.lease.lost.Swap(true) {
		return
	}
	h.relay.count(func(s *Stats) { s.Lost++ })
	h.logs.stop()
	h.calls.cancel(errLost)
	h.relay.config.Log.Warn("lost the lease of a sink", "sink", h.sink.Name, "token", h.lease.token, "why", why)
}

// signals are messages of other goroutines to a holder.
type signals struct {
	lagging   []tenantLag      // logs with events after the cursor
	confirmed map[string]int64 // last positions of logs that have grown, from the database
	heads     map[string]int64 // last positions from commits and notifications
	revision  int64            // of the sink
	until     time.Time        // the lease is valid at least until then
	due       []*tenantLog     // unloaded logs whose next attempt is due
	late      []*call          // calls past their timeout and grace period
	lost      bool             // another node has the lease
	drain     bool             // release the lease
	stop      bool             // cancel the calls
}

// tenantLag is a tenant with events after its cursor, as of a revision of the sink.
type tenantLag struct {
	tenant                 string
	cursor, head, revision int64
}

// signalBox collects signals until the holder takes them. Sending never blocks.
type signalBox struct {
	poked chan struct{} // one token: there are signals

	mu      sync.Mutex
	waiting signals
	reading map[string]bool // tenants with a reader, which follows the log by itself
}

func newSignalBox() *signalBox {
	b := &signalBox{poked: make(chan struct{}, 1), reading: map[string]bool{}}
	b.takeAll()
	return b
}

func (b *signalBox) send(tell func(*signals)) {
	b.mu.Lock()
	tell(&b.waiting)
	b.mu.Unlock()
	b.poke()
}

func (b *signalBox) poke() {
	select {
	case b.poked <- struct{}{}:
	default:
	}
}

func (b *signalBox) noteHead(tenant string, head int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading[tenant] {
		return
	}
	b.waiting.heads[tenant] = max(b.waiting.heads[tenant], head)
	b.poke()
}

func (b *signalBox) setReading(tenant string, reads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reads {
		b.reading[tenant] = true
	} else {
		delete(b.reading, tenant)
	}
}

func (b *signalBox) takeAll() signals {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.waiting
	b.waiting = signals{confirmed: map[string]int64{}, heads: map[string]int64{}}
	return s
}
