package relay

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// next is what to deliver now; nil: nothing.
func (f *flow) next(now time.Time) *call {
	for l := f.alarms.due(now); l != nil && !f.drains; l = f.alarms.due(now) {
		l.at = nowhere
		f.put(l, now)
	}
	if f.calls >= f.policy.slots || f.circuit.farewell != "" {
		return nil
	}
	if f.circuit.open {
		return f.probe(now)
	}
	if !f.ready.some() {
		return nil
	}
	free := f.policy.slots - f.calls // they share what there is
	return f.begin(f.gather(min(max((f.items-f.out)/free, 1), f.policy.batch)))
}

// gather takes up to n items from the lanes that are ready, in turns of their
// tenants, a fair share from each.
func (f *flow) gather(n int) []*item {
	items := make([]*item, 0, n)
	bytes := 0
	take := func(l *lane, from, share int) {
		q := *l.queue()
		for _, it := range q[from:min(from+share, len(q))] {
			size := len(it.event.CloudEvent)
			if len(items) == n || len(items) > 0 && bytes+size > callBytes {
				return
			}
			bytes += size
			items = append(items, it)
		}
	}
	share := max(1, n/max(f.ready.count, 1))
	var only *lane
	for len(items) < n && bytes < callBytes {
		l := f.ready.pop()
		if l == nil {
			break
		}
		before := len(items)
		take(l, 0, share)
		if len(items) == before { // too large for what is left
			f.ready.push(l)
			break
		}
		l.at = busy
		only = l
		if before > 0 {
			only = nil
		}
	}
	if only != nil {
		take(only, len(items), n)
	}
	return items
}

// begin makes a call of items whose lanes are not in any other.
func (f *flow) begin(items []*item) *call {
	slices.SortFunc(items, func(a, b *item) int { return cmp.Compare(a.seq, b.seq) })
	c := &call{items: items, events: make([]transitions.Logged, len(items)), accepted: f.accepted}
	for i, it := range items {
		it.lane.at, it.lane.out = busy, it.mark != nil
		c.events[i] = *it.event
		f.lastOut = max(f.lastOut, it.seq)
	}
	f.calls++
	f.out += len(items)
	return c
}
