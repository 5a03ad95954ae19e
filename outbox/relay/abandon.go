package relay

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

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
