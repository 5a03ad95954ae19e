package relay

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// policy is how a flow delivers.
type policy struct {
	exhausted Exhausted
	attempts  int
	backoff   func(failures int) time.Duration // at random
	batch     int                              // events in one call
	calls     int                              // at once
	window    int                              // events in memory
	maxAside  int                              // instances that may be aside
}

const (
	windowBytes   = 32 << 20    // of events in memory
	callBytes     = 4 << 20     // of events in one call
	maxInlineWait = time.Second // an event that waits for longer is set aside
)

// flow has the events between the log and the sink. It decides what is delivered
// when, and what becomes of it. It is for one goroutine, and knows neither clock nor
// database nor sink.
//
// An event is in the queue of its instance until it is delivered or set aside. Within
// a queue the order is kept: nothing behind an event is delivered before it, and no
// queue is in two calls.
type flow struct {
	policy  policy
	queues  map[instanceKey]*instanceQueue
	ready   fairQueue   // queues with events that can be delivered now
	unread  fairQueue   // queues whose rows of outbox_dead must be read
	timers  retryTimers // of queues that wait for their next attempt
	circuit circuit
	calls   callCounts
	memory  memoryUse
	aside   asideCounts
	pending pendingStore

	unattributed []*item      // events or receiver: it is not known yet which has failed
	unloadable   []unloadable // windows to be unloaded, when the holder gets to it
	seq          int64        // of the item that came last
	items        int          // in queues
	draining     bool         // nothing new is begun
}

// callCounts are the calls that are under way, and what came of the others.
type callCounts struct {
	open      int   // calls that have not ended
	abandoned int   // of them, those that have ignored their timeout
	items     int   // in the others
	lastSeq   int64 // of the items that were ever in a call, the last
	accepted  int64 // events that the receiver has taken
}

// memoryUse is what is in memory of the events after the stored cursors.
type memoryUse struct{ events, bytes int }

func (m memoryUse) reaches(events, bytes int) bool { return m.events >= events || m.bytes >= bytes }

// asideCounts are the instances that are aside.
type asideCounts struct {
	count    int
	ofTenant map[string]int
	unknown  bool            // it is not known yet which are: nothing is taken in
	full     map[string]bool // tenants of which it is not known: they have too many
	freed    bool            // since that was read, some are no longer aside, or have begun to wait for an operator
}

func newFlow(p policy) *flow {
	return &flow{policy: p, queues: map[instanceKey]*instanceQueue{}, ready: fairQueue{state: ready}, unread: fairQueue{state: unread},
		aside: asideCounts{ofTenant: map[string]int{}, unknown: true}}
}

// call is what is handed to the sink at once.
type call struct {
	items     []*item
	events    []transitions.Logged
	probe     bool
	untried   bool  // a probe whose event was never tried, though others like it were
	ended     bool  // in time
	abandoned bool  // it did not end in time
	accepted  int64 // by the receiver, before it began
}

// room is how many events more there is room for in a log's window. Every tenant has
// some, however much the others take.
func (f *flow) room(w *logWindow) (n int) {
	most := f.policy.window
	switch m := f.memory; {
	case f.aside.unknown || f.aside.full[w.tenant] || f.draining:
	case !m.reaches(most, windowBytes):
		n = most - m.events
	case !m.reaches(2*most, 2*windowBytes):
		n = max(most/32, 1) - w.events
	case m.bytes < 3*windowBytes: // there may be more tenants than that is for
		n = 1 - w.events
	}
	if w.headOnly {
		n = min(n, 1-w.events)
	}
	return n
}

// admit takes in what there is room for of a piece of a tenant's log, which comes
// directly after what was taken in last. It returns how many events that was. wanted
// says which of them go to the sink; nil: all.
func (f *flow) admit(w *logWindow, events []transitions.Logged, wanted []bool, now time.Time) (taken int) {
	for taken < len(events) {
		n := min(f.room(w), len(events)-taken)
		if n <= 0 {
			break
		}
		for n += taken; n < len(events) && events[n].Position == events[n-1].Position; n++ { // the events of a position go together
		}
		f.take(w, events[:n], wanted, taken, now)
		taken = n
	}
	f.markChanged(w)
	return taken
}

// take takes in events, from an index on.
func (f *flow) take(w *logWindow, events []transitions.Logged, wanted []bool, from int, now time.Time) {
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
		case q.aside && (q.onHold || q.notBefore.Sub(now) > maxInlineWait):
			f.setAside(q)
		}
	}
	w.advance()
}

// stalled reports whether there is no room in memory, and nothing there that could be
// delivered: what waits has to make room.
func (f *flow) stalled() bool {
	nothing := !f.circuit.open && !f.ready.has() || f.circuit.mustSearch()
	return f.memory.reaches(f.policy.window, windowBytes) && nothing && f.calls.open < f.policy.calls && !f.draining
}

// queue finds or makes the queue of an instance.
func (f *flow) queue(k instanceKey) *instanceQueue {
	q := f.queues[k]
	if q == nil {
		q = &instanceQueue{instanceKey: k}
		f.queues[k] = q
	}
	return q
}

// reschedule gives a queue the state that it belongs in, unless its events are in a
// call or its rows are being read.
func (f *flow) reschedule(q *instanceQueue, now time.Time) {
	switch {
	case q.state == inCall || q.state == reading:
		return
	case q.onHold:
		q.state = onHold
		f.setAside(q) // what came meanwhile
		return
	case q.notBefore.After(now):
		q.state = backingOff
		f.timers.set(q)
		if q.notBefore.Sub(now) > maxInlineWait || f.draining {
			f.setAside(q)
		}
		return
	case q.first() == nil && !q.aside:
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
		f.setAside(q) // one may be of a transition that the cursor has to pass before its rows are stored
	default:
		f.requestRows(q)
	}
}

// requestRows lets the rows of a queue be read.
func (f *flow) requestRows(q *instanceQueue) {
	q.state = unread
	f.unread.push(q)
}

// drain lets what is under way come to its end, and what was taken in before it, and
// begins nothing else.
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

// drained reports whether nothing is left of that.
func (f *flow) drained() bool {
	none := f.calls.open == f.policy.calls || f.circuit.open || f.circuit.goneReason != "" || !f.ready.has()
	return f.calls.open == f.calls.abandoned && none
}

// drop forgets what is behind the first n items of a queue.
func (f *flow) drop(items *[]*item, n int) {
	f.items -= len(*items) - n
	clear((*items)[n:])
	*items = (*items)[:n]
}

// markChanged remembers that a window has something to store.
func (f *flow) markChanged(w *logWindow) {
	if !w.changed && w.dirty() {
		w.changed = true
		f.pending.windows = append(f.pending.windows, w)
	}
}
