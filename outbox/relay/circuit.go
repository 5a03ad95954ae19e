package relay

import (
	"cmp"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
)

// circuit is open while the receiver as a whole fails. It then tries one event at a time, with
// backoff.
type circuit struct {
	open         bool
	probing      bool
	failures     int       // in a row; 0 while a failure of the receiver is only suspected
	retry        time.Time // time of the next attempt
	retryUntried time.Time // time of the next attempt with an untried event or a group outside failedGroups
	reported     bool      // the sink reported a failure of the receiver
	searchedAt   int       // value of failures when events were last deferred to search for deliverable ones
	goneReason   string    // message of the receiver that refused all further events

	firstFailing instanceKey         // first instance that failed since the receiver last accepted an event; zero: none
	failedGroups map[eventGroup]bool // groups that failed since then
}

// eventGroup is a set of events that a receiver may accept while it refuses others.
type eventGroup struct{ tenant, kind string }

func groupOf(it *item) eventGroup { return eventGroup{it.event.Tenant, it.event.Type} }

// probeMax bounds the backoff of the circuit, unless the receiver asks for more.
const probeMax = time.Minute

// countAccepted counts accepted events, including those of discarded windows, and reports whether
// there were any.
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

// receiverFailed reports whether a failure is attributed to the receiver: the sink says so, or
// another instance failed and nothing was accepted since then or since the call began. Failures of
// a single instance and permanent failures are attributed to the event.
func (f *flow) receiverFailed(c *call, it *item, failure *sink.Failure) bool {
	k := &f.circuit
	switch {
	case failure.Kind.Whole():
		// It failed like this before, and again while other events were accepted.
		before := it.attempts > 0 && it.kind.Whole() && !it.unattributed
		ofEvent := before && !c.probe && f.calls.accepted > c.accepted && failure.Kind != sink.Gone && failure.RetryAfter == 0
		return !ofEvent
	case failure.Kind == sink.Permanent || f.calls.accepted > c.accepted:
		return false
	case !k.open && k.firstFailing == (instanceKey{}):
		k.firstFailing = it.queue.instanceKey
		f.noteFailedGroup(it)
	}
	return k.open || k.firstFailing != it.queue.instanceKey
}

func (f *flow) noteFailedGroup(it *item) {
	if f.circuit.failedGroups == nil {
		f.circuit.failedGroups = map[eventGroup]bool{}
	}
	f.circuit.failedGroups[groupOf(it)] = true
}

// updateCircuit opens or closes the circuit after a call. If the receiver accepted events since the
// call began, or the sink did not report a failure of the receiver, another event is tried at once:
// perhaps only some events fail.
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
		k.goneReason = cmp.Or(sink.Printable(whole.Message, sink.MaxMessage), "no reason given")
	case whole != nil && !k.open && whole.RetryAfter == 0 && (f.calls.accepted > c.accepted || !whole.Kind.Whole()):
		k.open, k.retry, k.retryUntried = true, now, now
	case whole != nil && c.untried && k.failures > 0 && !whole.Kind.Whole(): // says little about the receiver
		k.retryUntried = now.Add(f.untriedWait(whole.RetryAfter))
		if at := now.Add(whole.RetryAfter); at.After(k.retry) {
			k.retry = at
		}
	case whole != nil && (c.probe || !k.open):
		f.openCircuit(now, whole.RetryAfter)
	case whole != nil: // call started before the circuit opened
	case took && k.open && (c.probe || k.failures == 0):
		*k = circuit{}
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
	case c.probe: // a permanent failure says nothing about other events
		k.retry, k.retryUntried = now, now
	}
}

// openCircuit opens the circuit with backoff. Untried events wait less: the receiver may refuse
// only one tenant, one type or a few instances.
func (f *flow) openCircuit(now time.Time, atLeast time.Duration) {
	k := &f.circuit
	k.open = true
	k.failures++
	k.retry = now.Add(max(min(f.policy.backoff(k.failures), probeMax), atLeast))
	k.retryUntried = now.Add(f.untriedWait(atLeast))
}

// untriedWait returns the backoff of untried events.
func (f *flow) untriedWait(atLeast time.Duration) time.Duration {
	return max(min(f.policy.backoff(1), probeMax), atLeast)
}

// searchAfter is the number of failures in a row, reached after about a minute, after which events
// are deferred to search for deliverable ones.
const searchAfter = 8

// mustSearch reports whether events should be deferred to find others that the receiver accepts. It
// is false if the sink reported a failure of the receiver, and true once per failure, so that a
// long outage defers few events.
func (k *circuit) mustSearch() bool {
	return k.open && !k.reported && k.failures >= max(searchAfter, k.searchedAt+1)
}

// Ranks of probe candidates; the lowest goes first. Only triedBefore waits longer after each
// failure.
const (
	ofNewGroup = iota // no event of its tenant and type failed in the outage
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

// probe returns a call with a single event that tests whether the receiver is back. It picks the
// candidate with the lowest rank, and among these the one with the fewest attempts, so that an
// event that crashes the receiver does not block the others.
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
