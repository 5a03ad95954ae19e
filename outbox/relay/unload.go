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
