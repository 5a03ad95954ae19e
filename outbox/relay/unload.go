package relay

import (
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// unloadable is a window that should leave memory until the next attempt of its first event.
type unloadable struct {
	window *logWindow
	head   *item
}

// lastAttempt is the state of the first event of an unloaded log.
type lastAttempt struct {
	position int64
	ordinal  int
	attempts int
	kind     sink.Kind
	failure  string
}

// requestUnload requests the unloading of an event's window. Only Block needs it: other policies
// defer events.
func (f *flow) requestUnload(head *item) {
	if f.policy.exhausted == Block && head.pending != nil {
		f.unloadable = append(f.unloadable, unloadable{head.pending.window, head})
	}
}

// unload discards a window and returns its replacement, which loads only the blocking event when
// that is due. Blocked tenants therefore use no memory, and events delivered behind the blocking
// one are repeated once. It returns nil if the window no longer only waits.
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

// discard drops the events of a window from memory; they are neither delivered nor stored. Calls in
// progress finish first, so that order holds: until then nothing else of their instances is
// delivered. It must not run during a batch.
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
		if !q.deferred && !q.hangs(now) {
			q.notBefore = time.Time{}
		}
		if q.state != reading && q.state != onHold {
			q.state = idle
			f.reschedule(q, now)
		}
	}
}
