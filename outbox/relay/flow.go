package relay

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

type policy struct {
	exhausted   Exhausted
	attempts    int
	backoff     func(failures int) time.Duration // randomized
	batch       int                              // events per call
	calls       int                              // maximum number of concurrent calls
	window      int                              // events in memory
	maxDeferred int                              // deferred instances
}

const (
	windowBytes   = 32 << 20    // of events in memory
	callBytes     = 4 << 20     // of events per call
	maxInlineWait = time.Second // events with a longer backoff are deferred
)

// flow holds the events between log and sink and decides when to deliver, retry, defer or park
// each of them. It belongs to one goroutine and depends on neither clock, database nor sink.
//
// An event is in its instance's queue until it is delivered or deferred. Queues keep their order,
// and no queue is in two calls.
type flow struct {
	policy   policy
	queues   map[instanceKey]*instanceQueue
	ready    fairQueue   // queues with deliverable events
	unread   fairQueue   // queues whose rows of outbox_dead must be read
	timers   retryTimers // of queues in backoff
	circuit  circuit
	calls    callCounts
	memory   memoryUse
	deferred deferredCounts
	pending  storeBatch // collects what must be stored

	unattributed []*item      // items whose failure may be due to the event or the receiver
	unloadable   []unloadable // windows for the holder to unload
	seq          int64        // of the last item
	items        int          // in queues
	draining     bool         // nothing new is started
}

type callCounts struct {
	open      int   // calls in progress
	abandoned int   // of these, those that ignored their timeout
	items     int   // items in the calls that are not abandoned
	lastSeq   int64 // highest seq of the items that were ever in a call
	accepted  int64 // events that the receiver accepted
}

// memoryUse is the memory used by events after the stored cursors.
type memoryUse struct{ events, bytes int }

func (m memoryUse) reaches(events, bytes int) bool { return m.events >= events || m.bytes >= bytes }

type deferredCounts struct {
	count    int
	ofTenant map[string]int
	unknown  bool            // not read yet: no events are admitted
	full     map[string]bool // tenants with too many deferred instances to know all
	freed    bool            // since the last reload some are delivered or wait for an operator
}

func newFlow(p policy) *flow {
	return &flow{policy: p, queues: map[instanceKey]*instanceQueue{}, ready: fairQueue{state: ready}, unread: fairQueue{state: unread},
		deferred: deferredCounts{ofTenant: map[string]int{}, unknown: true}}
}

type call struct {
	items     []*item
	events    []transitions.Logged
	probe     bool
	untried   bool  // a probe with an untried event
	ended     bool  // in time
	abandoned bool  // did not end in time
	accepted  int64 // events that the receiver had accepted before the call began
}

// capacity returns how many more events fit into a log's window. Every tenant has a guaranteed share.
func (f *flow) capacity(w *logWindow) (n int) {
	most := f.policy.window
	switch m := f.memory; {
	case f.deferred.unknown || f.deferred.full[w.tenant] || f.draining:
	case !m.reaches(most, windowBytes):
		n = most - m.events
	case !m.reaches(2*most, 2*windowBytes):
		n = max(most/32, 1) - w.events
	case m.bytes < 3*windowBytes: // more tenants than the window has shares for
		n = 1 - w.events
	}
	if w.headOnly {
		n = min(n, 1-w.events)
	}
	return n
}

// admit adds the next piece of a tenant's log as far as memory allows, and returns the number of
// events that it added. wanted selects the events for the sink; nil selects all.
func (f *flow) admit(w *logWindow, events []transitions.Logged, wanted []bool, now time.Time) (taken int) {
	for taken < len(events) {
		n := min(f.capacity(w), len(events)-taken)
		if n <= 0 {
			break
		}
		for n += taken; n < len(events) && events[n].Position == events[n-1].Position; n++ { // the events of a position stay together
		}
		f.enqueue(w, events[:n], wanted, taken, now)
		taken = n
	}
	f.markChanged(w)
	return taken
}

func (f *flow) enqueue(w *logWindow, events []transitions.Logged, wanted []bool, from int, now time.Time) {
	items := make([]item, len(events)-from)
	for i := from; i < len(events); i++ {
		e := &events[i]
		if wanted != nil && !wanted[i] {
			w.passOver(e.Position)
			continue
		}
		p := w.positionOf(e.Position)
		f.seq++
		f.items++
		f.memory.events++
		f.memory.bytes += w.add(p, e)
		q := f.queue(instanceKey{e.Tenant, e.Instance})
		it := &items[i-from]
		*it = item{event: e, queue: q, pending: p, seq: f.seq}
		if last := &w.resumed; last.position == e.Position && last.ordinal == e.Ordinal {
			it.attempts, it.kind, it.failure = last.attempts, last.kind, last.failure
			if w.failure != "" {
				w.blocker = it
			}
		}
		q.fromLog = append(q.fromLog, it)
		switch {
		case q.state == idle:
			f.reschedule(q, now)
		case q.deferred && (q.onHold || q.notBefore.Sub(now) > maxInlineWait):
			f.deferEvents(q)
		}
	}
	w.advance()
}

// stalled reports whether memory is full and nothing in it is deliverable, so that waiting events
// must be deferred or unloaded.
func (f *flow) stalled() bool {
	nothing := !f.circuit.open && !f.ready.has() || f.circuit.mustSearch()
	return f.memory.reaches(f.policy.window, windowBytes) && nothing && f.calls.open < f.policy.calls && !f.draining
}

func (f *flow) queue(k instanceKey) *instanceQueue {
	q := f.queues[k]
	if q == nil {
		q = &instanceQueue{instanceKey: k}
		f.queues[k] = q
	}
	return q
}

// reschedule updates the state of a queue, unless a call has its events or its rows are being read.
func (f *flow) reschedule(q *instanceQueue, now time.Time) {
	switch {
	case q.state == inCall || q.state == reading:
		return
	case q.onHold:
		q.state = onHold
		f.deferEvents(q) // events that arrived meanwhile
		return
	case q.notBefore.After(now):
		q.state = backingOff
		f.timers.set(q)
		if q.notBefore.Sub(now) > maxInlineWait || f.draining {
			f.deferEvents(q)
		}
		return
	case q.first() == nil && !q.deferred:
		q.state = idle
		delete(f.queues, q.instanceKey)
		return
	case q.first() != nil:
		if q.state != ready {
			q.state = ready
			f.ready.push(q)
		}
	case q.unstored > 0:
		q.state = unstored
		f.deferEvents(q) // the cursor must pass the rest of its transition before the rows are stored
	default:
		f.requestRows(q)
	}
}

func (f *flow) requestRows(q *instanceQueue) {
	q.state = unread
	f.unread.push(q)
}

// drain finishes the calls in progress and what was admitted before them, and starts nothing else.
func (f *flow) drain(now time.Time) {
	if f.draining {
		return
	}
	f.draining = true
	for _, q := range f.queues {
		if q.state != inCall {
			f.drop(&q.fromDead, 0)
		}
		keep := len(q.fromLog)
		for keep > 0 && q.fromLog[keep-1].seq > f.calls.lastSeq {
			keep--
		}
		f.drop(&q.fromLog, keep)
		if q.state == ready || q.state == backingOff {
			f.reschedule(q, now)
		}
	}
}

func (f *flow) drained() bool {
	none := f.calls.open == f.policy.calls || f.circuit.open || f.circuit.goneReason != "" || !f.ready.has()
	return f.calls.open == f.calls.abandoned && none
}

// drop removes all but the first n items of a queue.
func (f *flow) drop(items *[]*item, n int) {
	f.items -= len(*items) - n
	clear((*items)[n:])
	*items = (*items)[:n]
}

func (f *flow) markChanged(w *logWindow) {
	if !w.changed && w.dirty() {
		w.changed = true
		f.pending.windows = append(f.pending.windows, w)
	}
}

// next returns the next call to make, or nil.
func (f *flow) next(now time.Time) *call {
	for q := f.timers.due(now); q != nil && !f.draining; q = f.timers.due(now) {
		q.state = idle
		f.reschedule(q, now)
	}
	if f.calls.open >= f.policy.calls || f.circuit.goneReason != "" {
		return nil
	}
	if f.circuit.open {
		return f.probe(now)
	}
	if !f.ready.has() {
		return nil
	}
	free := f.policy.calls - f.calls.open // a fair share for each free call
	return f.newCall(f.gather(min(max((f.items-f.calls.items)/free, 1), f.policy.batch)))
}

// gather takes up to n items from the ready queues, round-robin over the tenants.
func (f *flow) gather(n int) []*item {
	items := make([]*item, 0, n)
	bytes := 0
	take := func(q *instanceQueue, from, share int) {
		queued := *q.items()
		for _, it := range queued[from:min(from+share, len(queued))] {
			size := len(it.event.CloudEvent)
			if len(items) == n || len(items) > 0 && bytes+size > callBytes {
				return
			}
			bytes += size
			items = append(items, it)
		}
	}
	share := max(1, n/max(f.ready.count, 1))
	var only *instanceQueue
	for len(items) < n && bytes < callBytes {
		q := f.ready.pop()
		if q == nil {
			break
		}
		before := len(items)
		take(q, 0, share)
		if len(items) == before { // the next item is too large for the call
			f.ready.push(q)
			break
		}
		q.state = inCall
		only = q
		if before > 0 {
			only = nil
		}
	}
	if only != nil {
		take(only, len(items), n)
	}
	return items
}

func (f *flow) newCall(items []*item) *call {
	slices.SortFunc(items, func(a, b *item) int { return cmp.Compare(a.seq, b.seq) })
	c := &call{items: items, events: make([]transitions.Logged, len(items)), accepted: f.calls.accepted}
	for i, it := range items {
		it.queue.state, it.queue.logInCall = inCall, it.pending != nil
		c.events[i] = *it.event
		f.calls.lastSeq = max(f.calls.lastSeq, it.seq)
	}
	f.calls.open++
	f.calls.items += len(items)
	return c
}
