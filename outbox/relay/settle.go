package relay

import (
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
)

// settle decides what becomes of the events of a call. failures is what the sink
// answered.
func (f *flow) settle(c *call, failures []*sink.Failure, now time.Time) {
	f.calls--
	f.out -= len(c.items)
	took := f.accept(failures)
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
		case f.blames(c, it, failure):
			halt(l)
			f.failed(it, failure)
			f.spare(it, failure)
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
	f.judge(c, whole, took, now)
}

// delivered ends an event's way.
func (f *flow) delivered(it *item) {
	it.suspect = false
	f.news.delivered++
	if it.mark == nil {
		f.tell(it, inspect.DeadRedriven)
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
		f.tell(it, inspect.DeadQueued)
	}
	l.until = now.Add(max(f.policy.backoff(it.attempts), failure.RetryAfter))
	if it.mark != nil && it.mark.of.alone {
		f.tire(it)
	}
}

// tell notes what becomes of an event that is, or now gets, a row. A new row is
// written when the cursor passes its event, and not before: after a crash the
// event comes from the log again.
func (f *flow) tell(it *item, status inspect.DeadStatus) {
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
	f.tell(it, inspect.DeadWaiting)
	f.pass(it)
	if f.policy.exhausted == HoldInstance {
		f.markAside(l, true)
		l.barred = !l.stale // a person may have removed the row; it is read again
		f.freed = f.freed || l.barred
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
