package relay

import (
	"cmp"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// circuit is open while the receiver as a whole takes nothing: then one event at a
// time is tried, after a wait.
type circuit struct {
	open         bool
	probing      bool
	failures     int       // in a row; 0 while it is only suspected that the receiver fails
	retry        time.Time // when the next event is tried
	retryUntried time.Time // when one is that was never tried, or whose group is not among failedGroups
	reported     bool      // the sink has said that it is the receiver
	searchedAt   int       // the failures when events were last set aside to find what the receiver takes
	goneReason   string    // what the receiver said when it wanted no more events

	firstFailing instanceKey         // the first instance that failed since the receiver took something; not set: none has
	failedGroups map[eventGroup]bool // what has failed since then
}

// eventGroup is what a receiver may take while it takes nothing else.
type eventGroup struct{ tenant, kind string }

func groupOf(it *item) eventGroup { return eventGroup{it.event.Tenant, it.event.Type} }

// probeMax is the longest wait before a receiver is tried again that does not ask for
// more.
const probeMax = time.Minute

// countAccepted counts what the receiver has taken, also of discarded windows, and
// reports whether there was any.
func (f *flow) countAccepted(failures []*sink.Failure) (some bool) {
	for _, failure := range failures {
		if failure == nil {
			f.calls.accepted++
			some = true
		}
	}
	if some {
		f.circuit.firstFailing = instanceKey{}
		if !f.circuit.open {
			f.circuit.failedGroups = nil
		}
	}
	return some
}

// receiverFailed reports whether a failure is attributed to the receiver: the sink says
// so, or another instance has failed and nothing was accepted since, nor since the call
// began. As long as a single instance fails it may be the event. What can never be
// delivered is attributed to the event.
func (f *flow) receiverFailed(c *call, it *item, failure *sink.Failure) bool {
	k := &f.circuit
	switch {
	case failure.Kind.Whole():
		return !f.eventFailed(c, it, failure)
	case failure.Kind == sink.Permanent || f.calls.accepted > c.accepted:
		return false
	case !k.open && k.firstFailing == (instanceKey{}):
		k.firstFailing = it.queue.instanceKey
		f.noteFailedGroup(it)
	}
	return k.open || k.firstFailing != it.queue.instanceKey
}

// eventFailed reports whether a failure that the sink calls the receiver's is
// attributed to the event: it has failed like that before while others were accepted,
// and so it is now.
func (f *flow) eventFailed(c *call, it *item, failure *sink.Failure) bool {
	before := it.attempts > 0 && it.kind.Whole() && !it.unattributed
	return before && !c.probe && f.calls.accepted > c.accepted && failure.Kind != sink.Gone && failure.RetryAfter == 0
}

// noteFailedGroup notes that an event of its group has failed.
func (f *flow) noteFailedGroup(it *item) {
	if f.circuit.failedGroups == nil {
		f.circuit.failedGroups = map[eventGroup]bool{}
	}
	f.circuit.failedGroups[groupOf(it)] = true
}

// postponeAttribution notes an attempt that is not counted against its event. Where the
// sink says that it was the receiver, the event may be the reason all the same.
func (f *flow) postponeAttribution(it *item, failure *sink.Failure) {
	it.receiverFailures++
	f.noteFailedGroup(it)
	if failure.Kind.Whole() && !it.unattributed {
		it.unattributed = true
		f.unattributed = append(f.unattributed, it)
	}
}

// attributeFailures counts the failures of the receiver as a whole against the events
// that met them, now that it has taken another: they may be the reason.
func (f *flow) attributeFailures(now time.Time) {
	for _, it := range f.unattributed {
		q := it.queue
		if it.unattributed && q.first() == it && q.state != inCall && !q.hangs(now) {
			it.attempts++
			f.refused(it, &sink.Failure{Kind: it.kind, Message: it.failure}, now)
			q.state = idle
			f.reschedule(q, now)
		}
		it.unattributed = false
	}
	f.unattributed = f.unattributed[:0]
}

// updateCircuit decides whether the receiver as a whole takes events. When it has taken
// some since the call began, or has not said that it takes none, another one is tried
// at once: it may be that only some fail like that.
func (f *flow) updateCircuit(c *call, whole *sink.Failure, took bool, now time.Time) {
	k := &f.circuit
	if c.probe {
		k.probing = false
	}
	k.reported = k.reported || whole != nil && whole.Kind.Whole()
	switch {
	case c.abandoned && c.probe:
		f.openCircuit(now, 0)
	case whole != nil && whole.Kind == sink.Gone:
		k.goneReason = cmp.Or(sink.Printable(whole.Message, sink.MaxMessage), "it did not say why")
	case whole != nil && !k.open && whole.RetryAfter == 0 && (f.calls.accepted > c.accepted || !whole.Kind.Whole()):
		k.open, k.retry, k.retryUntried = true, now, now
	case whole != nil && c.untried && k.failures > 0 && !whole.Kind.Whole(): // it says little more of the receiver
		k.retryUntried = now.Add(f.untriedWait(whole.RetryAfter))
		if at := now.Add(whole.RetryAfter); at.After(k.retry) {
			k.retry = at
		}
	case whole != nil && (c.probe || !k.open):
		f.openCircuit(now, whole.RetryAfter)
	case whole != nil: // a call that was under way when the circuit opened
	case took && k.open && (c.probe || k.failures == 0):
		*k = circuit{}
		f.attributeFailures(now)
	case c.probe: // it was refused for good: that says nothing of the others
		k.retry, k.retryUntried = now, now
	}
}

// openCircuit opens the circuit until another event is tried. What was never tried is
// tried soon: the receiver may refuse only one tenant, one type, or a few instances.
func (f *flow) openCircuit(now time.Time, atLeast time.Duration) {
	k := &f.circuit
	k.open = true
	k.failures++
	k.retry = now.Add(max(min(f.policy.backoff(k.failures), probeMax), atLeast))
	k.retryUntried = now.Add(f.untriedWait(atLeast))
}

// untriedWait is how long what was never tried waits.
func (f *flow) untriedWait(atLeast time.Duration) time.Duration {
	return max(min(f.policy.backoff(1), probeMax), atLeast)
}

// searchAfter is how many failures in a row it takes until the receiver is tried with
// events for which memory has no room: about a minute.
const searchAfter = 8

// mustSearch reports whether room is to be made for these. Not where the sink says that
// it is the receiver; and once for each failure, so that little of a long outage goes
// through outbox_dead.
func (k *circuit) mustSearch() bool {
	return k.open && !k.reported && k.failures >= max(searchAfter, k.searchedAt+1)
}

// search sets events aside that are like those which the receiver did not take, though
// they are not counted as tried: behind them there may be some that it takes.
func (f *flow) search(now time.Time) {
	f.circuit.searchedAt = f.circuit.failures
	for _, q := range f.queues {
		if q.state == ready && !q.aside && f.circuit.failedGroups[groupOf(q.first())] {
			q.state, q.notBefore = backingOff, now.Add(probeMax)
			f.timers.set(q)
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
	case !f.circuit.failedGroups[groupOf(it)]:
		return ofNewGroup
	case it.receiverFailures == 0 && it.attempts == 0 && (it.failure == "" || it.kind == sink.Held):
		return neverTried
	}
	return triedBefore
}

// probe is a call of one event, to find out whether the receiver is back: of all that
// could be delivered the one with the lowest rank, and of these the one that was tried
// least often since. So an event that makes the receiver fall over does not keep the
// others from it.
func (f *flow) probe(now time.Time) *call {
	k := &f.circuit
	if k.probing || f.draining || now.Before(k.retryUntried) {
		return nil
	}
	var best *item
	rank := triedBefore
	f.ready.each(func(q *instanceQueue) {
		it := q.first()
		r := f.rank(it)
		if best == nil || cmp.Or(r-rank, it.receiverFailures-best.receiverFailures, cmp.Compare(it.seq, best.seq)) < 0 {
			best, rank = it, r
		}
	})
	if best == nil || rank == triedBefore && now.Before(k.retry) {
		return nil
	}
	k.probing = true
	c := f.newCall([]*item{best})
	c.probe, c.untried = true, rank == neverTried
	return c
}
