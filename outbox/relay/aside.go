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

// setAside puts the events of a lane that cannot be delivered now into
// outbox_dead, so that the cursor passes them.
func (f *flow) setAside(l *lane) {
	if l.out {
		return // they can be delivered, or it is tried
	}
	if f.policy.exhausted != Block && (l.aside || f.mayPutAside(l.tenant)) {
		for len(l.live) > 0 {
			it := l.live[0]
			if it.failure == "" {
				it.kind, it.failure = sink.Held, notTried
			}
			f.tell(it, inspect.DeadQueued)
			f.pass(it)
			f.markAside(l, true)
		}
	}
	if l.at == waiting || l.at == blocked {
		f.drop(&l.rows, 0) // they are read again
	}
}

// mayPutAside reports whether one more instance may be aside. Every tenant has some,
// however many the others have.
func (f *flow) mayPutAside(tenant string) bool {
	most := f.policy.lanes
	return f.aside < most || f.aside < 2*most && f.asideOf[tenant] < most/32
}

// notTried is the failure of what is behind another.
const notTried = "not tried: an earlier event of its instance is not delivered"

// relieve makes room in the window: what cannot be delivered now is put aside. Where
// it may not be, it is let go if logs have no reader because of it, or no room is left
// for any.
func (f *flow) relieve(crowded bool, now time.Time) {
	if f.circuit.searches() && f.policy.exhausted != Block {
		f.search(now)
	}
	crowded = crowded || f.events >= 2*f.policy.window || f.bytes >= 2*windowBytes
	for _, l := range f.lanes {
		if len(l.live) > 0 && (l.aside || l.at == waiting) {
			f.setAside(l)
		}
		if crowded && len(l.live) > 0 && l.at == waiting {
			f.tire(l.live[0])
		}
	}
}

// fetched takes in rows of a lane that was hungry. barred says that those which
// are left wait for a person.
func (f *flow) fetched(l *lane, rows []row, barred bool, now time.Time) {
	l.at = nowhere
	if f.drains {
		return
	}
	for i := range rows {
		r := &rows[i]
		it := &item{event: &r.event, lane: l, attempts: r.attempts, kind: r.kind, failure: r.failure}
		if r.removed {
			it.kind, it.failure = sink.Permanent, "the event is no longer in the outbox"
			f.tell(it, inspect.DeadWaiting)
			if f.policy.exhausted == HoldInstance {
				break // the next look at the rows finds that the others wait for it
			}
			continue
		}
		f.seq++
		it.seq = f.seq
		l.rows = append(l.rows, it)
		f.items++
	}
	if len(rows) == 0 && l.unwritten == 0 {
		l.barred = barred
		f.freed = f.freed || barred
		f.markAside(l, barred)
	}
	f.put(l, now)
}

// row is a row of outbox_dead with its event.
type row struct {
	event    transitions.Logged
	attempts int
	kind     sink.Kind
	failure  string
	removed  bool // there is no event any more
}

// held is what an instance is for which there are rows in outbox_dead.
type held struct {
	tenant   string
	instance uuid.UUID
	barred   bool // one of them waits for a person, and the others for it
}

// reload takes in which instances have rows of outbox_dead that come first. Of the
// tenants that are full there are too many to know them all: those that can be
// delivered are, and nothing is taken in from their logs until there are fewer.
func (f *flow) reload(list []held, full map[string]bool, now time.Time) {
	freed := make([]*lane, 0, 16)
	for _, l := range f.lanes {
		if l.barred && !full[l.tenant] {
			l.barred = false
			if l.at == blocked {
				freed = append(freed, l)
			}
		}
	}
	for _, h := range list {
		l := f.lane(key{h.tenant, h.instance})
		f.markAside(l, true)
		l.barred = h.barred
		if l.at == nowhere || l.at == ready || l.at == blocked && !h.barred { // the others find out when their turn comes
			l.at = nowhere
			f.put(l, now)
		}
	}
	for _, l := range freed {
		if l.at == blocked { // not in the list
			l.at = nowhere
			f.put(l, now)
		}
	}
	f.closed, f.full, f.freed = false, full, false
	if len(full) > 0 {
		f.news.failure = fmt.Sprintf("too many instances of %d tenants have events aside, such as %q: what is new of them waits until there are fewer",
			len(full), slices.Min(slices.Collect(maps.Keys(full))))
	}
}

// reread takes notice that a person has changed something about the sink. The rows
// that were read and are not delivered are read again: some may have been skipped.
// And a receiver that takes nothing is tried at once, however long it wants to be
// left alone.
func (f *flow) reread(now time.Time) {
	f.circuit.retry, f.circuit.sooner = now, now
	for _, l := range f.lanes {
		switch {
		case l.at == busy:
			l.stale = true
		case l.at == ready && l.aside:
			f.drop(&l.rows, 0)
			l.at = nowhere
			f.put(l, now)
		}
	}
}

// markAside says whether a lane is aside.
func (f *flow) markAside(l *lane, aside bool) {
	if aside != l.aside {
		l.aside = aside
		n := 1
		if !aside {
			n, f.freed = -1, true
		}
		f.aside += n
		if f.asideOf[l.tenant] += n; f.asideOf[l.tenant] == 0 {
			delete(f.asideOf, l.tenant)
		}
	}
}
