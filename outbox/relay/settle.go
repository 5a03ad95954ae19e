package relay

import (
	"cmp"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// circuit is open while the receiver as a whole takes nothing: then one event at
// a time is tried, after a wait.
type circuit struct {
	open     bool
	probing  bool
	failures int // in a row; 0 while it is only doubted: it takes others
	retry    time.Time
	farewell string // the receiver wants no more events, and this is what it said
}

// settle decides what becomes of the events of a call. failures is what the sink
// answered.
func (f *flow) settle(c *call, failures []*sink.Failure, now time.Time) {
	f.calls--
	f.out -= len(c.items)
	f.accept(failures)
	var halted map[*lane]bool // by their first failure
	halt := func(l *lane) {
		if halted == nil {
			halted = map[*lane]bool{}
		}
		halted[l] = true
	}
	var whole *sink.Failure
	for i, it := range c.items {
		failure := failures[i]
		switch l := it.lane; {
		case it.mark != nil && it.mark.of.void: // its log is read anew; only what it says of the receiver counts
			switch {
			case failure == nil:
				f.news.delivered++
			case failure.Kind != sink.Held:
				f.failed(it, failure)
				if failure.Kind.Whole() && (whole == nil || failure.Kind == sink.Gone) {
					whole = failure
				}
			}
		case halted[l]: // nothing behind a failure counts, whatever the sink says
		case failure == nil:
			f.delivered(it)
		case failure.Kind == sink.Held:
			halt(l)
		case failure.Kind.Whole() && !f.itsOwn(c, it, failure):
			halt(l)
			it.wholes++
			f.failed(it, failure)
			if !it.suspect {
				it.suspect = true
				f.suspects = append(f.suspects, it)
			}
			if whole == nil || failure.Kind == sink.Gone {
				whole = failure
			}
		default:
			halt(l)
			it.attempts++
			f.failed(it, failure)
			f.refused(it, failure, now)
		}
	}
	for _, it := range c.items {
		if l := it.lane; l.at == busy {
			if l.stale {
				f.drop(&l.rows, 0)
			}
			f.dropVoid(l)
			l.at, l.out, l.stale = nowhere, false, false
			f.put(l, now)
		}
	}
	f.judge(c, whole, now)
}

// judge decides whether the receiver as a whole takes events. When it has taken some
// since the call began, another one is tried at once: it may be that only one event
// fails like that.
func (f *flow) judge(c *call, whole *sink.Failure, now time.Time) {
	k := &f.circuit
	if c.probe {
		k.probing = false
	}
	switch {
	case c.abandoned && c.probe:
		k.failures++
		k.retry = now.Add(min(f.policy.backoff(k.failures), probeMax))
	case whole != nil && whole.Kind == sink.Gone:
		k.farewell = cmp.Or(sink.Printable(whole.Message, sink.MaxMessage), "it did not say why")
	case whole != nil && !c.probe && !k.open && f.accepted > c.accepted && whole.RetryAfter == 0:
		k.open, k.retry = true, now
	case whole != nil && (c.probe || !k.open):
		k.open = true
		k.failures++
		k.retry = now.Add(max(min(f.policy.backoff(k.failures), probeMax), whole.RetryAfter))
	case whole != nil: // one that was under way when another found out
	case c.probe:
		*k = circuit{}
		f.convict(now)
	}
}

// accept counts what the receiver has taken, whoever is to have it.
func (f *flow) accept(failures []*sink.Failure) {
	for _, failure := range failures {
		if failure == nil {
			f.accepted++
		}
	}
}

// itsOwn reports whether a failure of the receiver as a whole is the event's doing:
// it has failed like that before while others were accepted, and so it is now.
func (f *flow) itsOwn(c *call, it *item, failure *sink.Failure) bool {
	convicted := it.attempts > 0 && it.kind.Whole() && !it.suspect
	return convicted && !c.probe && f.accepted > c.accepted && failure.Kind != sink.Gone && failure.RetryAfter == 0
}

// probeMax is the longest wait before the receiver is tried again that does not
// ask for more.
const probeMax = time.Minute

// convict counts the failures of the receiver as a whole against the events that
// met them, now that it has taken another: they may be why it failed.
func (f *flow) convict(now time.Time) {
	for _, it := range f.suspects {
		l := it.lane
		if it.suspect && l.first() == it && l.at != busy && !l.hangs(now) {
			it.attempts++
			f.refused(it, &sink.Failure{Kind: it.kind, Message: it.failure}, now)
			l.at = nowhere
			f.put(l, now)
		}
		it.suspect = false
	}
	f.suspects = f.suspects[:0]
}

// delivered ends an event's way.
func (f *flow) delivered(it *item) {
	it.suspect = false
	f.news.delivered++
	if it.mark == nil {
		f.tell(it, transitions.DeadRedriven)
	}
	f.pass(it)
}

// failed takes notice of an attempt that failed.
func (f *flow) failed(it *item, failure *sink.Failure) {
	it.kind, it.failure = kindOf(failure.Kind), sink.Printable(failure.Message, sink.MaxMessage)
	f.news.failed++
	f.news.failure = it.failure
}

// refused decides what becomes of an event that failed: another attempt later,
// or none.
func (f *flow) refused(it *item, failure *sink.Failure, now time.Time) {
	l, exhausted := it.lane, failure.Kind == sink.Permanent || it.attempts >= f.policy.attempts
	if exhausted && (it.mark == nil || f.policy.exhausted != Block) {
		f.park(it)
		return
	}
	if exhausted {
		it.mark.of.blocker, it.mark.of.failure = it, "blocked by event "+it.event.ID()+": "+it.failure
		f.note(it.mark.of)
	}
	if it.mark == nil {
		f.tell(it, transitions.DeadQueued)
	}
	l.until = now.Add(max(f.policy.backoff(it.attempts), failure.RetryAfter))
	if it.mark != nil && it.mark.of.alone {
		f.tire(it)
	}
}

// tell notes what becomes of an event that is, or now gets, a row. A new row is
// written when the cursor passes its event, and not before: after a crash the
// event comes from the log again.
func (f *flow) tell(it *item, status transitions.DeadStatus) {
	n := note{item: it, status: status, kind: it.kind, failure: it.failure, attempts: it.attempts, asOf: always}
	if it.mark == nil {
		f.news.notes = append(f.news.notes, n)
		return
	}
	it.mark.of.parks = append(it.mark.of.parks, n)
	it.lane.unwritten++
}

// park gives an event up: it waits for a person.
func (f *flow) park(it *item) {
	l := it.lane
	f.tell(it, transitions.DeadWaiting)
	f.pass(it)
	if f.policy.exhausted == HoldInstance {
		f.markAside(l, true)
		l.barred = true
	}
}

// pass takes the first event out of its lane. The cursor can pass it.
func (f *flow) pass(it *item) {
	q := &it.lane.rows
	if it.mark != nil {
		q = &it.lane.live
	}
	(*q)[0] = nil
	*q = (*q)[1:]
	f.items--
	if it.mark == nil {
		return
	}
	s := it.mark.of
	it.mark.open--
	s.advance()
	if s.blocker == it {
		s.blocker, s.failure = nil, ""
	}
	f.note(s)
}

// kindOf is a kind that can be stored, whatever a sink makes up.
func kindOf(k sink.Kind) sink.Kind {
	switch k {
	case sink.Temporary, sink.Permanent, sink.Unavailable, sink.Gone, sink.Held:
		return k
	}
	return sink.Temporary
}
