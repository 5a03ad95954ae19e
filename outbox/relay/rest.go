package relay

import (
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// tired is a stretch whose first event waits for its next attempt, and which should
// not be kept in memory for that long.
type tired struct {
	of   *stretch
	head *item
}

// tried is what is known of an event of a log that was let go.
type tried struct {
	position int64
	ordinal  int
	attempts int
	kind     sink.Kind
	failure  string
}

// tire asks for a stretch to be let go. Only where nothing is given up can a
// stretch do no better than wait: elsewhere its events are put aside.
func (f *flow) tire(head *item) {
	if f.policy.exhausted == Block && head.mark != nil {
		f.tired = append(f.tired, tired{head.mark.of, head})
	}
}

// letGo gives up what is in memory of a stretch, and returns the one to go on with
// at a time: it begins with the event that waits, and takes in nothing else until
// that is delivered. So tenants take no room while they are blocked, however many
// they are, and what was delivered behind the event is repeated once. nil: it is
// not so any more that the stretch does nothing but wait.
func (f *flow) letGo(t tired, now time.Time) (next *stretch, until time.Time) {
	s, l := t.of, t.head.lane
	if s.void || s.done > 0 || len(s.marks) == 0 || s.marks[0] != t.head.mark || l.at != waiting || l.live[0] != t.head {
		return nil, until
	}
	e := t.head.event
	until = l.until
	next = &stretch{tenant: s.tenant, since: s.since, stored: s.stored, read: s.stored, failure: s.failure, said: s.said, alone: true,
		tried: tried{e.Position, e.Ordinal, t.head.attempts, t.head.kind, t.head.failure}}
	f.discard(s, now)
	f.note(next)
	return next, until
}
