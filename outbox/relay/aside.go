package relay

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// setAside sets the events of a queue aside that cannot be delivered now: they become
// rows of outbox_dead, so that the cursor passes them.
func (f *flow) setAside(q *instanceQueue) {
	if q.logInCall {
		return // they are being tried
	}
	if f.policy.exhausted != Block && (q.aside || f.maySetAside(q.tenant)) {
		for len(q.fromLog) > 0 {
			it := q.fromLog[0]
			if it.failure == "" {
				it.kind, it.failure = sink.Held, notTried
			}
			f.setRow(it, inspect.DeadQueued)
			f.pass(it)
			f.markAside(q, true)
		}
	}
	if q.state == backingOff || q.state == onHold {
		f.drop(&q.fromDead, 0) // they are read again
	}
}

// maySetAside reports whether one more instance may be aside. Every tenant has room
// for some, however many the others have.
func (f *flow) maySetAside(tenant string) bool {
	most := f.policy.maxAside
	return f.aside.count < most || f.aside.count < 2*most && f.aside.ofTenant[tenant] < most/32
}

// notTried is the failure of what is behind another event.
const notTried = "not tried: an earlier event of its instance is not delivered"

// makeRoom makes room in memory: what cannot be delivered now is set aside. Where it
// may not be, it is unloaded if logs have no reader because of it (contended), or no
// room is left for any.
func (f *flow) makeRoom(contended bool, now time.Time) {
	if f.circuit.mustSearch() && f.policy.exhausted != Block {
		f.search(now)
	}
	contended = contended || f.memory.reaches(2*f.policy.window, 2*windowBytes)
	for _, q := range f.queues {
		if len(q.fromLog) > 0 && (q.aside || q.state == backingOff) {
			f.setAside(q)
		}
		if contended && len(q.fromLog) > 0 && q.state == backingOff {
			f.requestUnload(q.fromLog[0])
		}
	}
}

// addRows takes in rows of a queue that were read. onHold says that the rows which are
// left wait for an operator.
func (f *flow) addRows(q *instanceQueue, rows []queuedRow, onHold bool, now time.Time) {
	q.state = idle
	if f.draining {
		return
	}
	for i := range rows {
		r := &rows[i]
		it := &item{event: &r.event, queue: q, attempts: r.attempts, kind: r.kind, failure: r.failure}
		if r.removed {
			it.kind, it.failure = sink.Permanent, "the event is no longer in the outbox"
			f.setRow(it, inspect.DeadWaiting)
			if f.policy.exhausted == HoldInstance {
				break // the next time that the rows are read, the others wait for it
			}
			continue
		}
		f.seq++
		it.seq = f.seq
		q.fromDead = append(q.fromDead, it)
		f.items++
	}
	if len(rows) == 0 && q.unstored == 0 {
		q.onHold = onHold
		f.aside.freed = f.aside.freed || onHold
		f.markAside(q, onHold)
	}
	f.reschedule(q, now)
}

// queuedRow is a row of outbox_dead with its event.
type queuedRow struct {
	event    transitions.Logged
	attempts int
	kind     sink.Kind
	failure  string
	removed  bool // there is no event any more
}

// asideInstance is an instance that has rows in outbox_dead.
type asideInstance struct {
	tenant   string
	instance uuid.UUID
	onHold   bool // one of them waits for an operator, and the others for it
}

// reloadAside takes in which instances have rows of outbox_dead that come first. Of
// the tenants that are full only those instances are known that can be delivered, and
// nothing is taken in from their logs until they have fewer.
func (f *flow) reloadAside(list []asideInstance, full map[string]bool, now time.Time) {
	freed := make([]*instanceQueue, 0, 16)
	for _, q := range f.queues {
		if q.onHold && !full[q.tenant] {
			q.onHold = false
			if q.state == onHold {
				freed = append(freed, q)
			}
		}
	}
	for _, a := range list {
		q := f.queue(instanceKey{a.tenant, a.instance})
		f.markAside(q, true)
		q.onHold = a.onHold
		if q.state == idle || q.state == ready || q.state == onHold && !a.onHold { // the others find out in their turn
			q.state = idle
			f.reschedule(q, now)
		}
	}
	for _, q := range freed {
		if q.state == onHold { // not in the list
			q.state = idle
			f.reschedule(q, now)
		}
	}
	f.aside.unknown, f.aside.full, f.aside.freed = false, full, false
	if len(full) > 0 {
		f.pending.failure = fmt.Sprintf(
			"too many instances of %d tenants have events aside, such as %q: what is new of them waits until there are fewer",
			len(full), slices.Min(slices.Collect(maps.Keys(full))))
	}
}

// reread takes in that an operator has changed something about the sink. The rows that
// were read and are not delivered are read again: some may have been skipped. And a
// receiver that takes nothing is tried at once, however long it wants to be left alone.
func (f *flow) reread(now time.Time) {
	f.circuit.retry, f.circuit.retryUntried = now, now
	for _, q := range f.queues {
		switch {
		case q.state == inCall:
			q.stale = true
		case q.state == ready && q.aside:
			f.drop(&q.fromDead, 0)
			q.state = idle
			f.reschedule(q, now)
		}
	}
}

// markAside says whether an instance is aside.
func (f *flow) markAside(q *instanceQueue, aside bool) {
	if aside == q.aside {
		return
	}
	q.aside = aside
	n := 1
	if !aside {
		n, f.aside.freed = -1, true
	}
	f.aside.count += n
	if f.aside.ofTenant[q.tenant] += n; f.aside.ofTenant[q.tenant] == 0 {
		delete(f.aside.ofTenant, q.tenant)
	}
}
