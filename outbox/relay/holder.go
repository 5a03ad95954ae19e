package relay

import (
	"errors"
	"sync/atomic"
	"time"
)

const (
	storeEvery  = 100 * time.Millisecond // at most, while there is room in the window
	fetchEvery  = 5 * time.Millisecond   // at most, while there are rows to be read
	retryStore  = time.Second            // until a batch is sent again that could not be stored
	reloadEvery = time.Second            // at most
	stopGrace   = 5 * time.Second        // for calls to end whose context has ended
)

// Why the context of a call has ended.
var (
	errLost     = errors.New("another node may have taken the sink over")
	errStopping = errors.New("this node is stopping")
	errTimeout  = errors.New("the call took too long")
)

// holder delivers to a sink while this node holds the sink's lease. One goroutine
// decides everything (run); others read the logs, call the sink and store, and send
// it their results.
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

// sinkLease is a node's lease of a sink.
type sinkLease struct {
	token    int64       // the fencing token: whoever has the newest holds the lease
	until    time.Time   // it lasts at least so long
	lost     atomic.Bool // another node may have it
	released bool        // it was given back
}

func newHolder(r *Relay, s *Sink, token, revision int64, until time.Time) *holder {
	h := &holder{relay: r, sink: s, flow: newFlow(s.policy()), calls: newSinkCalls(s.Calls), signals: newSignalBox(),
		store: storeLoop{replies: make(chan *storeReply, 1), reload: true, knownMoves: revision}, wanted: lagRequests{missed: true}}
	h.lease.token, h.lease.until = token, until
	h.logs = newLogReaders(h)
	return h
}

// run delivers until the lease is lost or given back.
func (h *holder) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !h.ended() {
		h.act(time.Now())
		timer.Reset(h.untilNext(time.Now()))
		select {
		case p := <-h.logs.pieces:
			h.logs.admit(p, time.Now())
		case r := <-h.logs.reports:
			h.logs.handleReport(r)
		case r := <-h.calls.results:
			h.settle(r, time.Now())
		case r := <-h.store.replies:
			h.takeReply(r, time.Now())
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
	h.relay.stats.logs.Add(-int64(len(h.logs.of)))
	if open := h.flow.calls.open; open > 0 {
		h.relay.config.Log.Warn("a sink ignores that its calls were told to end", "sink", h.sink.Name, "calls", open)
	}
}

// ended reports whether nothing is left to do.
func (h *holder) ended() bool {
	calls := &h.flow.calls
	return (calls.open == calls.abandoned || h.calls.left) && !h.store.sending && (h.lease.lost.Load() || h.lease.released)
}

// act does what can be done now.
func (h *holder) act(now time.Time) {
	f := h.flow
	switch {
	case h.lease.lost.Load():
		return
	case now.After(h.lease.until):
		h.lose("its lease could not be prolonged in time")
		return
	case f.circuit.goneReason != "" && !f.draining:
		h.relay.config.Log.Warn("a sink's receiver wants no more events; it is paused", "sink", h.sink.Name, "answer", f.circuit.goneReason)
		h.drain()
	}
	h.startCalls(now)
	if f.stalled() {
		f.makeRoom(h.logs.waiting(), now)
	}
	if h.logs.unload(now) {
		h.startCalls(now)
	}
	if at, ok := h.storeDue(); ok && !now.Before(at) {
		h.startStore(now)
	}
	if room := len(h.logs.queue.rest()) < maxWaiting; h.logs.hasRoom.Swap(room) != room && room {
		h.relay.lags.wake()
	}
}

// untilNext is how long nothing can be done unless something arrives.
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

// handleSignals takes in what other goroutines have told.
func (h *holder) handleSignals() {
	s := h.signals.take()
	if s.until.After(h.lease.until) {
		h.lease.until = s.until
	}
	if s.lost {
		h.lose("another node has taken it over")
	}
	if s.drain {
		h.drain()
	}
	if s.stop && !h.calls.stopping {
		h.drain()
		h.calls.breakOff()
	}
	if s.revision > h.store.revision {
		h.store.reloadSoon(time.Now())
	}
	for _, lag := range s.lagging {
		if h.logs.of[lag.tenant] == nil && lag.revision < h.store.knownMoves {
			h.wantLag(lag.tenant) // the cursor may have been moved since it was read
		} else {
			h.logs.noteLag(lag)
		}
	}
	for tenant, head := range s.confirmed {
		if l := h.logs.of[tenant]; l != nil {
			h.logs.noteLag(tenantLag{tenant: tenant, head: head})
		} else {
			h.wantLag(tenant)
		}
	}
	h.logs.resume(s.due)
	h.abandon(s.late, time.Now())
	for tenant, head := range s.heads {
		if l := h.logs.of[tenant]; l != nil {
			l.announced = max(l.announced, head)
			h.logs.start(l)
		} else {
			h.wantLag(tenant)
		}
	}
}

// wantLag lets it be found out where the cursor of a tenant is whose log has grown.
// While the receiver is down there is time until the next poll.
func (h *holder) wantLag(tenant string) {
	h.wanted.want(tenant, h.logs.hasRoom.Load())
	if !h.flow.circuit.open {
		h.relay.lags.wake()
	}
}

// drain lets what is under way come to its end, and gives the lease back then.
func (h *holder) drain() {
	h.logs.stop()
	h.flow.drain(time.Now())
}

// lose ends the work for the sink without another statement to the database.
func (h *holder) lose(why string) {
	if h.lease.lost.Swap(true) {
		return
	}
	h.relay.stats.lost.Add(1)
	h.logs.stop()
	h.calls.cancel(errLost)
	h.relay.config.Log.Warn("a sink is no longer this node's", "sink", h.sink.Name, "token", h.lease.token, "why", why)
}
