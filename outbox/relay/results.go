package relay

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// applyResults applies the results of a call to its events. failures are the sink's results.
func (f *flow) applyResults(c *call, failures []*sink.Failure, now time.Time) {
	f.calls.open--
	f.calls.items -= len(c.items)
	took := f.countAccepted(failures)
	var whole *sink.Failure
	for i, it := range c.items {
		failure := failures[i]
		switch q := it.queue; {
		case it.pending != nil && it.pending.window.discarded: // its log is read again; only its receiver failures count
			switch {
			case failure == nil:
				f.pending.delivered++
			case failure.Kind != sink.Held:
				f.failed(it, failure)
				if failure.Kind.Whole() && (whole == nil || failure.Kind == sink.Gone) {
					whole = failure
				}
			}
		case q.failed: // results behind a failure are ignored
		case failure == nil:
			f.delivered(it)
		case failure.Kind == sink.Held:
			q.failed = true
		case f.receiverFailed(c, it, failure):
			q.failed = true
			f.failed(it, failure)
			it.receiverFailures++
			f.noteFailedGroup(it)
			if failure.Kind.Whole() && !it.unattributed {
				it.unattributed = true
				f.unattributed = append(f.unattributed, it)
			}
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
			n := 0
			for n < len(q.fromLog) && q.fromLog[n].pending.window.discarded {
				n++
			}
			f.items -= n
			clear(q.fromLog[:n])
			q.fromLog = q.fromLog[n:]
			q.state, q.logInCall, q.stale, q.failed = idle, false, false, false
			f.reschedule(q, now)
		}
	}
	f.updateCircuit(c, whole, took, now)
}

func (f *flow) delivered(it *item) {
	it.unattributed = false
	f.pending.delivered++
	if it.pending == nil {
		f.setRow(it, inspect.DeadRedriven)
	}
	f.dequeue(it)
}

func (f *flow) failed(it *item, failure *sink.Failure) {
	it.kind, it.failure = kindOf(failure.Kind), sink.Printable(failure.Message, sink.MaxMessage)
	f.pending.failed++
	f.pending.failure = it.failure
}

// refused schedules another attempt of a failed event or gives it up.
func (f *flow) refused(it *item, failure *sink.Failure, now time.Time) {
	exhausted := failure.Kind == sink.Permanent || it.attempts >= f.policy.attempts
	if exhausted && (it.pending == nil || f.policy.exhausted != Block) {
		q := it.queue
		f.setRow(it, inspect.DeadWaiting)
		f.dequeue(it)
		if f.policy.exhausted == HoldInstance {
			f.markDeferred(q, true)
			q.onHold = !q.stale // otherwise an operator may have removed the row, which is read again
			f.deferred.freed = f.deferred.freed || q.onHold
		}
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

// setRow sets the status of an event's row of outbox_dead. New rows are stored when the cursor
// passes their event; after a crash before that, the event is read from the log again.
func (f *flow) setRow(it *item, status inspect.DeadStatus) {
	c := rowChange{item: it, status: status, kind: it.kind, failure: it.failure, attempts: it.attempts, asOf: anyRevision}
	if it.pending == nil {
		f.pending.changes = append(f.pending.changes, c)
		return
	}
	it.pending.window.newRows = append(it.pending.window.newRows, c)
	it.queue.unstored++
}

// dequeue removes the first event from its queue, so that the cursor can pass it.
func (f *flow) dequeue(it *item) {
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

// kindOf returns a kind that can be stored for any kind that a sink returns.
func kindOf(k sink.Kind) sink.Kind {
	switch k {
	case sink.Temporary, sink.Permanent, sink.Unavailable, sink.Gone, sink.Held:
		return k
	}
	return sink.Temporary
}

// untilCallEnds is a placeholder wait that only the end of a call replaces.
const untilCallEnds = 100 * 365 * 24 * time.Hour

// abandon stops waiting for a call that ignored its timeout. The call keeps its slot and its
// instances are not delivered until it ends. Otherwise one bad event could soon block every slot,
// and an instance could be in two calls. Events in memory can still be deferred, and the holder can
// end.
func (f *flow) abandon(c *call, now time.Time) {
	c.abandoned = true
	late := sink.Fail(sink.Temporary, nil,
		"the call ignored its timeout; this instance waits until the call returns or the sink is paused")
	f.applyResults(c, sink.InOrder(context.Background(), c.events, func(context.Context, *transitions.Logged) *sink.Failure { return late }), now)
	f.calls.open++
	f.calls.abandoned++
	for _, it := range c.items {
		q := it.queue
		f.queues[q.instanceKey] = q // even if the queue is empty
		q.notBefore, q.state = now.Add(untilCallEnds), idle
		f.reschedule(q, now)
	}
}

// callEnded processes the end of an abandoned call. Its results are too late: the events are delivered
// again.
func (f *flow) callEnded(c *call, now time.Time) {
	f.calls.open--
	f.calls.abandoned--
	for _, it := range c.items {
		if q := it.queue; q.hangs(now) {
			q.notBefore = now
			if q.state == backingOff {
				q.state = idle
				f.reschedule(q, now)
			}
		}
	}
}

// hangs reports whether an abandoned call holds events of the queue.
func (q *instanceQueue) hangs(now time.Time) bool { return q.notBefore.Sub(now) > untilCallEnds/2 }
