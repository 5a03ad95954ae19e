package relay

import (
	"math"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
)

// note is what a row of outbox_dead is to say.
type note struct {
	item     *item
	status   inspect.DeadStatus
	kind     sink.Kind
	failure  string
	attempts int
	asOf     int64 // the revision of the sink up to which it holds
}

// always is what holds as of any revision.
const always = math.MaxInt64

// news is what a flow has to store, beside what its stretches have.
type pendingStore struct {
	delivered, failed int64
	failure           string // the newest
	stretches         []*stretch
	notes             []note // of rows that there are
}

// letter is one message to the database: what is to be stored, and what is asked.
type letter struct {
	delivered, failed, parked int64
	failures                  int    // of the receiver as a whole, in a row
	failure                   string // the newest; "": no new one
	cursors                   []cursorNote
	parks                     []note  // rows that are new
	notes                     []note  // rows that have changed
	hungry                    []*lane // whose rows are to be read
	reload                    bool    // which instances are aside is to be read
	moved                     int64   // the revision up to which the moves of cursors are known
	release                   bool    // the lease is given back
	pause                     string  // the sink is paused, because of this; "": it is not
}

// cursorNote is what a row of outbox_cursor is to say.
type cursorNote struct {
	of       *stretch
	position int64
	failure  string
}

// known is the revision up to which the moves of a tenant's cursor are known.
func (l *letter) known(s *stretch) int64 { return max(s.since, l.moved) }

// fetchLanes is how many lanes' rows are read at once, at most.
const fetchLanes = 64

// pending reports whether a letter would say anything, and whether it should go
// at once.
func (f *flow) pending() (some, urgent bool) {
	hungry := f.fetches() && f.hungry.some()
	some = len(f.news.stretches) > 0 || len(f.news.notes) > 0 || f.news.failed > 0 || f.news.delivered > 0 || hungry
	full := f.events >= f.policy.window/2 || f.bytes >= windowBytes/2
	return some, hungry || full && len(f.news.stretches) > 0
}

// fetches reports whether rows are to be read: not to be held in memory while the
// receiver takes nothing.
func (f *flow) fetches() bool { return !f.drains && (!f.circuit.open || f.items < 2*f.policy.window) }

// letter takes what there is to store.
func (f *flow) letter() *letter {
	n := &f.news
	l := &letter{delivered: n.delivered, failed: n.failed, failures: f.circuit.failures, failure: n.failure, notes: n.notes, pause: f.circuit.farewell}
	for _, s := range n.stretches {
		s.listed = false
		if s.dirty() {
			l.cursors = append(l.cursors, cursorNote{s, s.cursor(), s.failure})
			l.parks = s.passed(l.parks)
		}
	}
	f.news = pendingStore{stretches: n.stretches[:0]}
	for _, p := range l.parks {
		if p.item.lane.unwritten--; p.item.lane.unwritten == 0 && p.item.lane.at == unwritten {
			f.ask(p.item.lane)
		}
	}
	for _, notes := range [][]note{l.parks, l.notes} {
		for i := range notes {
			if notes[i].status == inspect.DeadWaiting {
				l.parked++
			}
		}
	}
	for len(l.hungry) < fetchLanes && f.fetches() {
		lane := f.hungry.pop()
		if lane == nil {
			break
		}
		lane.at = reading
		l.hungry = append(l.hungry, lane)
	}
	return l
}

// stored takes notice that a letter's news are stored.
func (f *flow) stored(l *letter) {
	for _, c := range l.cursors {
		events, bytes := c.of.store(c.position, c.failure)
		f.events -= events
		f.bytes -= bytes
	}
}

// unsent takes back a letter of which it is not known that it arrived. To store
// its news twice does no harm, unless a person has changed a row in between: what
// is said of rows holds only as long as nobody has changed the sink. If it was not
// stored and is left out then, the events are delivered again.
func (f *flow) unsent(l *letter, now time.Time) {
	n := &f.news
	n.delivered += l.delivered
	n.failed += l.failed
	if n.failure == "" {
		n.failure = l.failure
	}
	for i := range l.notes {
		l.notes[i].asOf = min(l.notes[i].asOf, l.moved)
	}
	n.notes = append(l.notes, n.notes...)
	for _, p := range l.parks {
		p.item.mark.of.parks = append(p.item.mark.of.parks, p)
		p.item.lane.unwritten++
	}
	for _, c := range l.cursors {
		f.note(c.of)
	}
	for _, lane := range l.hungry {
		lane.at = nowhere
		f.put(lane, now)
	}
}
