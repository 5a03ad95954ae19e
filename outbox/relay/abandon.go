package relay

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// never is a wait that only the end of a call ends.
const never = 100 * 365 * 24 * time.Hour

// abandon gives up waiting for a call that does not end although it was told to.
// It keeps its place among the calls, and its instances are not delivered until it
// has ended: a sink that hangs because of one event would otherwise hang in every
// call soon, and have an instance in two of them. But it holds up nothing else: what
// it has of the window can be put aside, and a tenure can end without it.
func (f *flow) abandon(c *call, now time.Time) {
	c.abandoned = true
	late := sink.Fail(sink.Temporary, nil, "the call did not end when its time was up; nothing of this instance is tried before it ends, or the sink is paused")
	f.settle(c, sink.InOrder(context.Background(), c.events, func(context.Context, *transitions.Logged) *sink.Failure { return late }), now)
	f.calls++
	f.abandoned++
	for _, it := range c.items {
		l := it.lane
		f.lanes[l.key] = l // though there be nothing in it
		l.until, l.at = now.Add(never), nowhere
		f.put(l, now)
	}
}

// ended takes notice that a call has ended which was abandoned. What it says comes
// too late: its events are delivered again.
func (f *flow) ended(c *call, now time.Time) {
	f.calls--
	f.abandoned--
	for _, it := range c.items {
		if l := it.lane; l.hangs(now) {
			l.until = now
			if l.at == waiting {
				l.at = nowhere
				f.put(l, now)
			}
		}
	}
}

// hangs reports whether a call that was abandoned has events of the lane.
func (l *lane) hangs(now time.Time) bool { return l.until.Sub(now) > never/2 }
