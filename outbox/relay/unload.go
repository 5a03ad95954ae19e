package relay

import (
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// unloadable is a window whose first event waits for its next attempt, and which
// should not be kept in memory for that long.
type unloadable struct {
	window *logWindow
	head   *item
}

// lastAttempt is what is known of the first event of a log that was unloaded.
type lastAttempt struct {
	position int64
	ordinal  int
	attempts int
	kind     sink.Kind
	failure  string
}

// requestUnload asks for an event's window to be unloaded. Only where nothing is given
// up must a window wait: elsewhere its events are set aside.
func (f *flow) requestUnload(head *item) {
	if f.policy.exhausted == Block && head.pending != nil {
		f.unloadable = append(f.unloadable, unloadable{head.pending.window, head})
	}
}

// unload drops what is in memory of a window, and returns the window to go on with
// when its first event is due: it takes in nothing behind that event until that is
// delivered. So blocked tenants take no room, however many they are, and what was
// delivered behind the event is repeated once. nil: meanwhile the window does not only
// wait.
func (f *flow) unload(u unloadable, now time.Time) (next *logWindow, due time.Time) {
	w, q := u.window, u.head.queue
	first := len(w.positions) > 0 && w.positions[0] == u.head.pending
	if w.discarded || w.complete > 0 || !first || q.state != backingOff || q.fromLog[0] != u.head {
		return nil, due
	}
	e := u.head.event
	due = q.notBefore
	next = &logWindow{tenant: w.tenant, revision: w.revision, stored: w.stored, read: w.stored, failure: w.failure,
		storedFailure: w.storedFailure, headOnly: true,
		resumed: lastAttempt{e.Position, e.Ordinal, u.head.attempts, u.head.kind, u.head.failure}}
	f.discard(w, now)
	f.markChanged(next)
	return next, due
}

// discard drops what is in memory of a log whose cursor an operator has moved: nothing
// of it is delivered from here or stored. What is in a call comes to its end; until
// then nothing else of its instances is delivered, so that the order holds. No batch is
// under way.
func (f *flow) discard(w *logWindow, now time.Time) {
	w.discarded = true
	f.memory.events -= w.events
	for _, p := range w.positions {
		f.memory.bytes -= p.bytes
	}
	for _, c := range w.newRows {
		c.item.queue.unstored--
	}
	w.positions, w.newRows, w.events, w.complete = nil, nil, 0, 0
	for _, q := range f.queues {
		if q.tenant != w.tenant {
			continue
		}
		if q.state == inCall {
			q.stale = true
			if !q.logInCall {
				f.drop(&q.fromLog, 0)
			}
			continue
		}
		f.drop(&q.fromLog, 0)
		f.drop(&q.fromDead, 0)
		if !q.aside && !q.hangs(now) {
			q.notBefore = time.Time{}
		}
		if q.state != reading && q.state != onHold {
			q.state = idle
			f.reschedule(q, now)
		}
	}
}

// dropDiscarded drops the events of a discarded window from a queue that is in no call
// any more.
func (f *flow) dropDiscarded(q *instanceQueue) {
	n := 0
	for n < len(q.fromLog) && q.fromLog[n].pending.window.discarded {
		n++
	}
	f.items -= n
	clear(q.fromLog[:n])
	q.fromLog = q.fromLog[n:]
}
