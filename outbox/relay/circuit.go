package relay

import (
	"cmp"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// circuit is open while the receiver as a whole takes nothing: then one event at
// a time is tried, after a wait.
type circuit struct {
	open     bool
	probing  bool
	failures int       // in a row; 0 while it is only doubted
	retry    time.Time // the next event is tried
	sooner   time.Time // what was never tried is tried, or one of a group that is not among the tried
	said     bool      // by the sink, that it is the receiver
	searched int       // the failures at which room was made last, to see what else there is
	farewell string    // the receiver wants no more events, and this is what it said

	failing key            // the first instance that failed since the receiver took something; not set: none has
	tried   map[group]bool // what has failed since then
}

// group is what a receiver may take while it takes nothing else.
type group struct{ tenant, kind string }

func groupOf(it *item) group { return group{it.event.Tenant, it.event.Type} }

// probeMax is the longest wait before the receiver is tried again that does not
// ask for more.
const probeMax = time.Minute

// accept counts what the receiver has taken, whoever is to have it, and reports
// whether there was any.
func (f *flow) accept(failures []*sink.Failure) (some bool) {
	for _, failure := range failures {
		if failure == nil {
			f.accepted++
			some = true
		}
	}
	if some {
		f.circuit.failing = key{}
		if !f.circuit.open {
			f.circuit.tried = nil
		}
	}
	return some
}

// blames reports whether a failure is taken for the receiver's, because the sink says
// so, or because another instance has failed and nothing was accepted since, nor since
// the call began. As long as a single instance fails it may be the event; and what can
// never be delivered is the event's in any case.
func (f *flow) blames(c *call, it *item, failure *sink.Failure) bool {
	k := &f.circuit
	switch {
	case failure.Kind.Whole():
		return !f.itsOwn(c, it, failure)
	case failure.Kind == sink.Permanent || f.accepted > c.accepted:
		return false
	case !k.open && k.failing == (key{}):
		k.failing = it.lane.key
		f.tries(it)
	}
	return k.open || k.failing != it.lane.key
}

// tries notes that something of its group has failed.
func (f *flow) tries(it *item) {
	if f.circuit.tried == nil {
		f.circuit.tried = map[group]bool{}
	}
	f.circuit.tried[groupOf(it)] = true
}

// spare notes an attempt that is not counted against its event. Where the sink says
// that it was the receiver, the event may be why all the same.
func (f *flow) spare(it *item, failure *sink.Failure) {
	it.spared++
	f.tries(it)
	if failure.Kind.Whole() && !it.suspect {
		it.suspect = true
		f.suspects = append(f.suspects, it)
	}
}

// judge decides whether the receiver as a whole takes events. When it has taken some
// since the call began, or has not said that it takes none, another one is tried at
// once: it may be that only some fail like that.
func (f *flow) judge(c *call, whole *sink.Failure, took bool, now time.Time) {
	k := &f.circuit
	if c.probe {
		k.probing = false
	}
	k.said = k.said || whole != nil && whole.Kind.Whole()
	switch {
	case c.abandoned && c.probe:
		f.wait(now, 0)
	case whole != nil && whole.Kind == sink.Gone:
		k.farewell = cmp.Or(sink.Printable(whole.Message, sink.MaxMessage), "it did not say why")
	case whole != nil && !k.open && whole.RetryAfter == 0 && (f.accepted > c.accepted || !whole.Kind.Whole()):
		k.open, k.retry, k.sooner = true, now, now
	case whole != nil && c.first && k.failures > 0 && !whole.Kind.Whole(): // it says little more of the receiver
		k.sooner = now.Add(f.soon(whole.RetryAfter))
		k.retry = later(k.retry, now.Add(whole.RetryAfter))
	case whole != nil && (c.probe || !k.open):
		f.wait(now, whole.RetryAfter)
	case whole != nil: // one that was under way when another found out
	case took && k.open && (c.probe || k.failures == 0):
		*k = circuit{}
		f.convict(now)
	case c.probe: // it was refused for good: that says nothing of the others
		k.retry, k.sooner = now, now
	}
}

// wait opens the circuit until another event is tried. What was never tried comes soon:
// the receiver may take nothing of one tenant, of one type, or of a few instances alone.
func (f *flow) wait(now time.Time, atLeast time.Duration) {
	k := &f.circuit
	k.open = true
	k.failures++
	k.retry = now.Add(max(min(f.policy.backoff(k.failures), probeMax), atLeast))
	k.sooner = now.Add(f.soon(atLeast))
}

// soon is how long what was never tried waits.
func (f *flow) soon(atLeast time.Duration) time.Duration {
	return max(min(f.policy.backoff(1), probeMax), atLeast)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// searchAfter is how many failures in a row it takes until the receiver is tried with
// what there is no room for: about a minute.
const searchAfter = 8

// searches reports whether the window has room to make for that. Not where the sink says
// that it is the receiver; and for each failure once, so that little of a long outage
// goes through outbox_dead.
func (k *circuit) searches() bool {
	return k.open && !k.said && k.failures >= max(searchAfter, k.searched+1)
}

// search puts aside what is like events that the receiver did not take, though none of
// it is counted as tried: behind it there may be something that it takes.
func (f *flow) search(now time.Time) {
	f.circuit.searched = f.circuit.failures
	for _, l := range f.lanes {
		if l.at == ready && !l.aside && f.circuit.tried[groupOf(l.first())] {
			l.at, l.until = waiting, now.Add(probeMax)
			f.alarms.set(l)
		}
	}
}

// The ranks of what a probe may try: the lowest goes first. Only what was tried before
// waits for longer after each failure.
const (
	ofNewGroup = iota // nothing of its tenant and type was tried in the outage
	neverTried
	triedBefore
)

func (f *flow) rank(it *item) int {
	switch {
	case !f.circuit.tried[groupOf(it)]:
		return ofNewGroup
	case it.spared == 0 && it.attempts == 0 && (it.failure == "" || it.kind == sink.Held):
		return neverTried
	}
	return triedBefore
}

// probe is a call of one event, to see whether the receiver is back: of all that
// could be delivered the one with the lowest rank, and of these the one that was
// tried least often since. So an event that makes the receiver fall over does not keep
// everything from it.
func (f *flow) probe(now time.Time) *call {
	k := &f.circuit
	if k.probing || f.drains || now.Before(k.sooner) {
		return nil
	}
	var best *item
	rank := triedBefore
	f.ready.each(func(l *lane) {
		it := l.first()
		r := f.rank(it)
		if best == nil || cmp.Or(cmp.Compare(r, rank), cmp.Compare(it.spared, best.spared), cmp.Compare(it.seq, best.seq)) < 0 {
			best, rank = it, r
		}
	})
	if best == nil || rank == triedBefore && now.Before(k.retry) {
		return nil
	}
	k.probing = true
	c := f.begin([]*item{best})
	c.probe, c.first = true, rank == neverTried
	return c
}

// itsOwn reports whether a failure of the receiver as a whole is the event's doing:
// it has failed like that before while others were accepted, and so it is now.
func (f *flow) itsOwn(c *call, it *item, failure *sink.Failure) bool {
	convicted := it.attempts > 0 && it.kind.Whole() && !it.suspect
	return convicted && !c.probe && f.accepted > c.accepted && failure.Kind != sink.Gone && failure.RetryAfter == 0
}

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
