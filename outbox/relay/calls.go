package relay

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// next returns the next call to make, or nil.
func (f *flow) next(now time.Time) *call {
	for q := f.timers.due(now); q != nil && !f.draining; q = f.timers.due(now) {
		q.state = idle
		f.reschedule(q, now)
	}
	if f.calls.open >= f.policy.calls || f.circuit.goneReason != "" {
		return nil
	}
	if f.circuit.open {
		return f.probe(now)
	}
	if !f.ready.has() {
		return nil
	}
	free := f.policy.calls - f.calls.open // a fair share for each free call
	return f.newCall(f.gather(min(max((f.items-f.calls.items)/free, 1), f.policy.batch)))
}

// gather takes up to n items from the ready queues, round-robin over the tenants.
func (f *flow) gather(n int) []*item {
	items := make([]*item, 0, n)
	bytes := 0
	take := func(q *instanceQueue, from, share int) {
		queued := *q.items()
		for _, it := range queued[from:min(from+share, len(queued))] {
			size := len(it.event.CloudEvent)
			if len(items) == n || len(items) > 0 && bytes+size > callBytes {
				return
			}
			bytes += size
			items = append(items, it)
		}
	}
	share := max(1, n/max(f.ready.count, 1))
	var only *instanceQueue
	for len(items) < n && bytes < callBytes {
		q := f.ready.pop()
		if q == nil {
			break
		}
		before := len(items)
		take(q, 0, share)
		if len(items) == before { // the next item is too large for the call
			f.ready.push(q)
			break
		}
		q.state = inCall
		only = q
		if before > 0 {
			only = nil
		}
	}
	if only != nil {
		take(only, len(items), n)
	}
	return items
}

func (f *flow) newCall(items []*item) *call {
	slices.SortFunc(items, func(a, b *item) int { return cmp.Compare(a.seq, b.seq) })
	c := &call{items: items, events: make([]transitions.Logged, len(items)), accepted: f.calls.accepted}
	for i, it := range items {
		it.queue.state, it.queue.logInCall = inCall, it.pending != nil
		c.events[i] = *it.event
		f.calls.lastSeq = max(f.calls.lastSeq, it.seq)
	}
	f.calls.open++
	f.calls.items += len(items)
	return c
}
