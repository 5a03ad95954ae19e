package relay

import (
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
)

// settle decides what becomes of the events of a call. failures is what the sink
// answered.
func (f *flow) settle(c *call, failures []*sink.Failure, now time.Time) {
	f.calls.open--
	f.calls.items -= len(c.items)
	took := f.countAccepted(failures)
	var whole *sink.Failure
	for i, it := range c.items {
		failure := failures[i]
		switch q := it.queue; {
		case it.pending != nil && it.pending.window.discarded: // its log is read anew; only what it says of the receiver counts
			switch {
			case failure == nil:
				f.pending.delivered++
			case failure.Kind != sink.Held:
				f.failed(it, failure)
				if failure.Kind.Whole() && (whole == nil || failure.Kind == sink.Gone) {
					whole = failure
				}
			}
		case q.failed: // nothing behind a failure counts, whatever the sink says
		case failure == nil:
			f.delivered(it)
		case failure.Kind == sink.Held:
			q.failed = true
		case f.receiverFailed(c, it, failure):
			q.failed = true
			f.failed(it, failure)
			f.postponeAttribution(it, failure)
			if whole == nil || failure.Kind == sink.Gone {
				whole = failure
			}
		default:
			q.failed = true
			it.attempts++
			f.failed(it, failure)
			f.refused(it, failure, now)
		}
	}
	for _, it := range c.items {
		if q := it.queue; q.state == inCall {
			if q.stale {
				f.drop(&q.fromDead, 0)
			}
			f.dropDiscarded(q)
			q.state, q.logInCall, q.stale, q.failed = idle, false, false, false
			f.reschedule(q, now)
		}
	}
	f.updateCircuit(c, whole, took, now)
}

// delivered takes in that the receiver has an event.
func (f *flow) delivered(it *item) {
	it.unattributed = false
	f.pending.delivered++
	if it.pending == nil {
		f.setRow(it, inspect.DeadRedriven)
	}
	f.pass(it)
}

// failed takes in that an attempt has failed.
func (f *flow) failed(it *item, failure *sink.Failure) {
	it.kind, it.failure = kindOf(failure.Kind), sink.Printable(failure.Message, sink.MaxMessage)
	f.pending.failed++
	f.pending.failure = it.failure
}

// refused decides what becomes of an event that failed: another attempt later, or
// none.
func (f *flow) refused(it *item, failure *sink.Failure, now time.Time) {
	exhausted := failure.Kind == sink.Permanent || it.attempts >= f.policy.attempts
	if exhausted && (it.pending == nil || f.policy.exhausted != Block) {
		f.park(it)
		return
	}
	if exhausted {
		w := it.pending.window
		w.blocker, w.failure = it, "blocked by event "+it.event.ID()+": "+it.failure
		f.markChanged(w)
	}
	if it.pending == nil {
		f.setRow(it, inspect.DeadQueued)
	}
	it.queue.notBefore = now.Add(max(f.policy.backoff(it.attempts), failure.RetryAfter))
	if it.pending != nil && it.pending.window.headOnly {
		f.requestUnload(it)
	}
}

// setRow notes the status of an event's row of outbox_dead. A new row is stored when
// the cursor passes its event, and not before: after a crash the event comes from the
// log again.
func (f *flow) setRow(it *item, status inspect.DeadStatus) {
	c := rowChange{item: it, status: status, kind: it.kind, failure: it.failure, attempts: it.attempts, asOf: anyRevision}
	if it.pending == nil {
		f.pending.changes = append(f.pending.changes, c)
		return
	}
	it.pending.window.newRows = append(it.pending.window.newRows, c)
	it.queue.unstored++
}

// park gives an event up: it is a dead letter, and waits for an operator.
func (f *flow) park(it *item) {
	q := it.queue
	f.setRow(it, inspect.DeadWaiting)
	f.pass(it)
	if f.policy.exhausted == HoldInstance {
		f.markAside(q, true)
		q.onHold = !q.stale // an operator may have removed the row; it is read again
		f.aside.freed = f.aside.freed || q.onHold
	}
}

// pass takes the first event out of its queue. The cursor can pass it.
func (f *flow) pass(it *item) {
	items := &it.queue.fromDead
	if it.pending != nil {
		items = &it.queue.fromLog
	}
	(*items)[0] = nil
	*items = (*items)[1:]
	f.items--
	if it.pending == nil {
		return
	}
	w := it.pending.window
	it.pending.undelivered--
	w.advance()
	if w.blocker == it {
		w.blocker, w.failure = nil, ""
	}
	f.markChanged(w)
}

// kindOf is a kind that can be stored, whatever a sink makes up.
func kindOf(k sink.Kind) sink.Kind {
	switch k {
	case sink.Temporary, sink.Permanent, sink.Unavailable, sink.Gone, sink.Held:
		return k
	}
	return sink.Temporary
}
