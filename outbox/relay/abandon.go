package relay

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// untilCallEnds is a wait that only the end of a call ends.
const untilCallEnds = 100 * 365 * 24 * time.Hour

// abandon waits no longer for a call that has ignored its timeout. It stays one of
// the sink's calls, and its instances are not delivered until it has ended: a sink
// that hangs because of one event would otherwise soon hang in every call, and have an
// instance in two of them. But it holds up nothing else: what it has in memory can be
// set aside, and a holder can end without it.
func (f *flow) abandon(c *call, now time.Time) {
	c.abandoned = true
	late := sink.Fail(sink.Temporary, nil,
		"the call did not end when its time was up; nothing of this instance is tried before it ends, or the sink is paused")
	f.settle(c, sink.InOrder(context.Background(), c.events, func(context.Context, *transitions.Logged) *sink.Failure { return late }), now)
	f.calls.open++
	f.calls.abandoned++
	for _, it := range c.items {
		q := it.queue
		f.queues[q.instanceKey] = q // also when nothing is in it
		q.notBefore, q.state = now.Add(untilCallEnds), idle
		f.reschedule(q, now)
	}
}

// ended takes in that an abandoned call has ended. Its results come too late: its
// events are delivered again.
func (f *flow) ended(c *call, now time.Time) {
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

// hangs reports whether an abandoned call has events of the queue.
func (q *instanceQueue) hangs(now time.Time) bool { return q.notBefore.Sub(now) > untilCallEnds/2 }
