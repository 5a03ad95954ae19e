package relay

import (
	"time"

	"github.com/pawlhq/pawl/transitions"
)

// policy is what a flow goes by.
type policy struct {
	exhausted Exhausted
	attempts  int
	backoff   func(failures int) time.Duration // at random
	batch     int                              // events in one call
	slots     int                              // calls at once
	window    int                              // events in memory
	lanes     int                              // instances that may be aside
}

const (
	windowBytes = 32 << 20    // of events in memory
	callBytes   = 4 << 20     // of events in one call
	patience    = time.Second // a longer wait is waited out aside
)

// flow has the events between the log and the sink, and decides what is
// delivered when, and what becomes of it. It is for one goroutine, and knows
// neither clock nor database nor sink.
//
// An event is in its lane until it is delivered or put aside. Within a lane they
// go in order: nothing behind an event is delivered before it, and no lane is in
// two calls.
type flow struct {
	policy policy

	lanes    map[key]*lane
	ready    turns
	hungry   turns
	alarms   alarms
	suspects []*item
	tired    []tired // to be let go, when their tenure gets to it
	circuit  circuit
	news     pendingStore

	seq       int64           // of the item that came last
	lastOut   int64           // of those that were ever in a call, the last
	items     int             // in lanes
	out       int             // of them, in calls
	calls     int             // under way
	abandoned int             // of them, those that do not end
	accepted  int64           // events that the receiver has taken
	events    int             // in the window: after the stored cursors
	bytes     int             // of them
	aside     int             // lanes
	asideOf   map[string]int  // of each tenant
	closed    bool            // nothing is taken in: it is not known which instances are aside
	full      map[string]bool // tenants of which that is not known: they have too many
	freed     bool            // since that was read, some are no longer aside, or have begun to wait for a person
	drains    bool            // nothing new is begun
}

func newFlow(p policy) *flow {
	return &flow{policy: p, lanes: map[key]*lane{}, asideOf: map[string]int{}, ready: turns{at: ready}, hungry: turns{at: hungry}, closed: true}
}

// call is what is handed to the sink at once.
type call struct {
	items           []*item
	events          []transitions.Logged
	probe           bool
	first           bool  // a probe, and the event was never tried, though others like it were
	over, abandoned bool  // it has ended, or did not in time
	accepted        int64 // by the receiver, before it began
}

// room is how many events more there is room for in a stretch. Every tenant has
// some, however much the others take.
func (f *flow) room(s *stretch) (n int) {
	switch {
	case f.closed || f.full[s.tenant] || f.drains:
	case f.events < f.policy.window && f.bytes < windowBytes:
		n = f.policy.window - f.events
	case f.events < 2*f.policy.window && f.bytes < 2*windowBytes:
		n = max(f.policy.window/32, 1) - s.events
	case f.bytes < 3*windowBytes: // there may be more tenants than that is for
		n = 1 - s.events
	}
	if s.alone {
		n = min(n, 1-s.events)
	}
	return n
}

// admit takes in what there is room for of a piece of a tenant's log, which
// follows what was taken in last. It returns how many events that was. wanted
// says which of them go to the sink; nil: all.
func (f *flow) admit(s *stretch, events []transitions.Logged, wanted []bool, now time.Time) (taken int) {
	for taken < len(events) {
		n := min(f.room(s), len(events)-taken)
		if n <= 0 {
			break
		}
		for n += taken; n < len(events) && events[n].Position == events[n-1].Position; n++ { // the events of a position go together
		}
		if wanted == nil {
			f.take(s, events[taken:n], nil, now)
		} else {
			f.take(s, events[taken:n], wanted[taken:n], now)
		}
		taken = n
	}
	f.note(s)
	return taken
}

// take takes in events.
func (f *flow) take(s *stretch, events []transitions.Logged, wanted []bool, now time.Time) {
	items := make([]item, len(events))
	for i := range events {
		e := &events[i]
		if wanted != nil && !wanted[i] {
			s.passOver(e.Position)
			continue
		}
		m := s.markOf(e.Position)
		f.seq++
		f.items++
		f.events++
		f.bytes += s.add(m, e)
		l := f.lane(key{e.Tenant, e.Instance})
		items[i] = item{event: e, lane: l, mark: m, seq: f.seq}
		if p := &s.tried; p.position == e.Position && p.ordinal == e.Ordinal {
			items[i].attempts, items[i].kind, items[i].failure = p.attempts, p.kind, p.failure
			if s.failure != "" {
				s.blocker = &items[i]
			}
		}
		l.live = append(l.live, &items[i])
		switch {
		case l.at == nowhere:
			f.put(l, now)
		case l.aside && (l.barred || l.until.Sub(now) > patience):
			f.setAside(l)
		}
	}
	s.advance()
}

// stalled reports whether there is no room in the window, and nothing to deliver
// in it: what waits has to make room.
func (f *flow) stalled() bool {
	full := f.events >= f.policy.window || f.bytes >= windowBytes
	idle := !f.circuit.open && !f.ready.some() || f.circuit.searches()
	return full && idle && f.calls < f.policy.slots && !f.drains
}

// lane finds or makes the lane of an instance.
func (f *flow) lane(k key) *lane {
	l := f.lanes[k]
	if l == nil {
		l = &lane{key: k}
		f.lanes[k] = l
	}
	return l
}

// put puts a lane of which nothing is under way to where it belongs.
func (f *flow) put(l *lane, now time.Time) {
	switch {
	case l.at == busy || l.at == reading:
		return
	case l.barred:
		l.at = blocked
		f.setAside(l) // what came meanwhile
		return
	case l.until.After(now):
		l.at = waiting
		f.alarms.set(l)
		if l.until.Sub(now) > patience || f.drains {
			f.setAside(l)
		}
		return
	case l.first() == nil && !l.aside:
		l.at = nowhere
		delete(f.lanes, l.key)
		return
	case l.first() != nil:
		if l.at != ready {
			l.at = ready
			f.ready.push(l)
		}
	case l.unwritten > 0:
		l.at = unwritten
		f.setAside(l) // one may be of a transition that the cursor has to pass before its rows are written
	default:
		f.ask(l)
	}
}

// ask lets the rows of a lane be read.
func (f *flow) ask(l *lane) {
	l.at = hungry
	f.hungry.push(l)
}

// drain lets what is under way come to its end, and what was taken in before it,
// and begins nothing else.
func (f *flow) drain(now time.Time) {
	if f.drains {
		return
	}
	f.drains = true
	for _, l := range f.lanes {
		if l.at != busy {
			f.drop(&l.rows, 0)
		}
		keep := len(l.live)
		for keep > 0 && l.live[keep-1].seq > f.lastOut {
			keep--
		}
		f.drop(&l.live, keep)
		if l.at == ready || l.at == waiting {
			f.put(l, now)
		}
	}
}

// drained reports whether nothing is left of that.
func (f *flow) drained() bool {
	return f.calls == f.abandoned && (f.calls == f.policy.slots || f.circuit.open || f.circuit.farewell != "" || !f.ready.some())
}

// drop forgets what is behind the first n of a queue.
func (f *flow) drop(q *[]*item, n int) {
	f.items -= len(*q) - n
	clear((*q)[n:])
	*q = (*q)[:n]
}

// note remembers that a stretch has something to store.
func (f *flow) note(s *stretch) {
	if !s.listed && s.dirty() {
		s.listed = true
		f.news.stretches = append(f.news.stretches, s)
	}
}
