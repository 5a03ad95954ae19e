package relay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// outage is a flow with a clock, whose receiver accepts the events that accepts selects.
type outage struct {
	*flow
	t       *testing.T
	now     time.Time
	accepts func(*transitions.Event) bool
	fail    func() *sink.Failure
	tried   []transitions.Event
	given   int
}

// newOutage starts with a tenant's log and without deferral. Attempts take no time; each failure
// adds a second of backoff.
func newOutage(t *testing.T, log []transitions.Logged) *outage {
	f := newFlow(policy{attempts: 3, batch: 2, calls: 3, window: 1000,
		backoff: func(n int) time.Duration { return time.Duration(n) * time.Second }})
	o := &outage{flow: f, t: t, now: time.Unix(0, 0), accepts: func(*transitions.Event) bool { return false },
		fail: func() *sink.Failure { return sink.Fail(sink.Temporary, nil, "500") }}
	f.reloadDeferred(nil, nil, o.now)
	o.add(log)
	return o
}

// add admits a log as far as memory allows.
func (o *outage) add(log []transitions.Logged) (*logWindow, int) {
	s := &logWindow{tenant: log[0].Tenant}
	return s, o.admit(s, log, nil, o.now)
}

// call makes all calls that can be made concurrently.
func (o *outage) call() (made int) {
	var calls []*call
	for c := o.next(o.now); c != nil; c = o.next(o.now) {
		calls = append(calls, c)
	}
	for _, c := range calls {
		failures := make([]*sink.Failure, len(c.events))
		behind := map[instanceKey]bool{}
		for i := range c.events {
			e := &c.events[i].Event
			switch at := (instanceKey{e.Tenant, e.Instance}); {
			case behind[at]:
				failures[i] = sink.Fail(sink.Held, nil, "held")
			case !o.accepts(e):
				behind[at], failures[i] = true, o.fail()
				fallthrough
			default:
				o.tried = append(o.tried, *e)
			}
		}
		o.applyResults(c, failures, o.now)
	}
	l := o.takeBatch()
	o.given += int(l.parked)
	o.noteStored(l)
	for _, q := range l.fetch {
		o.addRows(q, nil, false, o.now)
	}
	return len(calls)
}

// goOn advances the clock.
func (o *outage) goOn(d time.Duration) {
	for end := o.now.Add(d); o.now.Before(end); o.now = o.now.Add(time.Second) {
		o.call()
	}
}

// Failures of different instances without a success in between are attributed to the receiver: one
// event at a time is tried, of each instance in turn, and none becomes a dead letter.
func TestOutageCountsNoAttempts(t *testing.T) {
	t.Parallel()
	o := newOutage(t, logOf("abcdefghij"))
	o.call()
	require.Truef(t, o.circuit.open, "after the first calls: %+v", o.circuit)
	o.tried = nil
	for range 3 * 24 * 3600 {
		n := o.call()
		require.Truef(t, n <= 1, "%d calls at once", n)
		o.now = o.now.Add(time.Second)
	}
	tried := map[byte]int{}
	for _, e := range o.tried {
		tried[e.Instance[0]]++
	}
	assert.Truef(t, len(tried) == 10 && o.given <= 0 && len(o.tried) >= 3*24*60,
		"after three days %d attempts, by instance %v, and %d events given up", len(o.tried), tried, o.given)
	o.accepts = func(e *transitions.Event) bool { return e.Instance[0] != 'c' }
	o.goOn(time.Hour)
	assert.Truef(t, !o.circuit.open && o.items == 0 && o.pending.delivered == 0 && o.given == 1,
		"an hour after it is back there are %d events left, %d are given up: %+v", o.items, o.given, o.circuit)
}

func TestHangingCallsOpenTheCircuit(t *testing.T) {
	o := newOutage(t, logOf("abcdefgh"))
	o.policy.batch, o.policy.attempts = 1, 1
	o.abandon(o.next(o.now), o.now) // this one may be due to the event
	o.abandon(o.next(o.now), o.now)
	require.Truef(t, o.circuit.open, "%+v", o.circuit)
	l := o.takeBatch()
	assert.Equal(t, int64(1), l.parked, "given up")
}

// Failures of a single instance count against its event; otherwise it would block its instance
// forever on a quiet node.
func TestSingleFailingInstanceIsParked(t *testing.T) {
	o := newOutage(t, logOf("aaa"))
	o.goOn(time.Hour)
	assert.Equal(t, 3, o.given, "given up")
}

// Two instances whose events always fail are not an outage: new events are tried soon, even of the
// same tenant and type, although the backoff has grown to a minute.
func TestNewEventsAreTriedBeforeFailingOnes(t *testing.T) {
	for name, kind := range map[string]sink.Kind{"as events": sink.Temporary, "as the receiver": sink.Unavailable} {
		t.Run(name, func(t *testing.T) {
			o := newOutage(t, logOf("ab"))
			o.policy.backoff = func(n int) time.Duration { return time.Second << min(n, 10) / 2 }
			o.fail = func() *sink.Failure { return sink.Fail(kind, nil, "no") }
			o.accepts = func(e *transitions.Event) bool { return e.Instance[0] > 'b' }
			o.goOn(time.Hour)
			require.Truef(t, o.circuit.open && o.calls.accepted <= 0, "%d were accepted, %+v", o.calls.accepted, o.circuit)
			for n := range 20 {
				log := logOf("c")
				log[0].Instance[1] = byte(n)
				o.add(log)
				before := o.calls.accepted
				o.goOn(3 * time.Second)
				require.NotEqualf(t, before, o.calls.accepted, "event %d waits: %+v", n, o.circuit)
				o.goOn(2 * time.Minute)
			}
		})
	}
}

// In an outage, new events are tried once, one at a time, without prolonging it.
func TestOutageIgnoresFirstAttempts(t *testing.T) {
	o := newOutage(t, logOf("ab"))
	o.goOn(time.Minute)
	failures, given := o.circuit.failures, o.given
	for n := range 100 {
		log := logOf("c")
		log[0].Instance[1] = byte(n)
		o.add(log)
	}
	o.tried = nil
	begun := o.now
	for ; len(o.tried) < 100; o.now = o.now.Add(time.Second) {
		made := o.call()
		require.Truef(t, made <= 1, "%d calls at once", made)
		require.Truef(t, o.now.Sub(begun) <= 10*time.Minute, "%d are tried", len(o.tried))
	}
	more := o.circuit.failures - failures
	assert.Truef(t, more <= 10 && o.given == given, "%d failures more in %s, %d events given up", more, o.now.Sub(begun), o.given)
}

// If a receiver refuses only one tenant or type, events of others are tried without waiting for the
// backoff. Once one is accepted, failures count.
func TestProbeFindsAcceptedGroups(t *testing.T) {
	o := newOutage(t, logOf("abcdefgh"))
	o.accepts = func(e *transitions.Event) bool { return e.Tenant == "u" || e.Type == "other" }
	o.goOn(time.Hour)
	require.Truef(t, o.circuit.open && o.given <= 0, "%d are given up, %+v", o.given, o.circuit)
	for i := range 200 {
		log := logOf("x")
		if i%2 == 0 {
			log[0].Tenant = "u"
		} else {
			log[0].Type = "other"
		}
		o.add(log)
		before := o.calls.accepted
		o.goOn(2 * time.Second)
		require.NotEqualf(t, before, o.calls.accepted, "event %d has to wait: %+v", i, o.circuit)
	}
	o.goOn(time.Minute)
	assert.NotEqual(t, 0, o.given, "nothing is given up while others are accepted")
}

// If refused events fill the window, some are deferred to try the events behind them.
func TestProbeSearchesBehindFullWindow(t *testing.T) {
	log := make([]transitions.Logged, 300)
	for i := range log {
		log[i] = logOf("a")[0]
		log[i].Position = int64(i + 1)
		log[i].Instance[1], log[i].Instance[2] = byte(i), byte(i>>8)
	}
	log[299].Type = "other"
	o := newOutage(t, log[:1])
	o.policy.window, o.policy.maxDeferred = 100, 1000
	o.accepts = func(e *transitions.Event) bool { return e.Type == "other" }
	s, taken := o.add(log[1:])
	for step := 0; o.calls.accepted == 0; step++ {
		require.Truef(t, step <= 3600, "it is not found: %d events are taken in, %+v", taken, o.circuit)
		o.call()
		if o.stalled() {
			o.freeMemory(false, o.now)
		}
		taken += o.admit(s, log[1+taken:], nil, o.now)
		o.now = o.now.Add(time.Second)
	}
	assert.Truef(t, o.given <= 0, "%d are given up", o.given)
}

// Events are not deferred if the sink itself reports a failure of the receiver.
func TestReportedOutageDefersNothing(t *testing.T) {
	o := newOutage(t, logOf("abcdefgh"))
	o.policy.window = 8
	o.fail = func() *sink.Failure { return sink.Fail(sink.Unavailable, nil, "down") }
	for range 3600 {
		o.call()
		require.False(t, o.stalled(), "room is to be made")
		o.now = o.now.Add(time.Second)
	}
}

// A tenant's only instance is in the next call even if another tenant has many.
func TestCallsAreFairToTenants(t *testing.T) {
	var log []transitions.Logged
	for i := range 900 {
		e := logOf("a")[0]
		e.Position, e.Instance[1], e.Instance[2] = int64(i+1), byte(i), byte(i>>8)
		log = append(log, e)
	}
	o := newOutage(t, log)
	for range 3 {
		o.next(o.now)
	}
	for i := range 5 {
		one := logOf("z")
		one[0].Tenant = fmt.Sprint("small-", i)
		o.add(one)
	}
	var got []string
	for range 5 {
		o.calls.open-- // a call ends
		for _, it := range o.next(o.now).items {
			got = append(got, it.event.Tenant)
		}
	}
	slices.Sort(got)
	got = slices.DeleteFunc(got, func(s string) bool { return s == "t" })
	want := []string{"small-0", "small-1", "small-2", "small-3", "small-4"}
	assert.Truef(t, slices.Equal(got, want), "in the next calls: %v", got)
}

// forgetful is a receiver with a duplicate window.
type forgetful struct{ sink.Sink }

func (forgetful) DuplicateWindow() time.Duration { return 20 * time.Second }

// A repetition whose acknowledgement was lost is recognized, however long the backoffs are configured.
func TestBackoffStaysInDuplicateWindow(t *testing.T) {
	s := Sink{To: forgetful{}, Retry: workflow.Retry{Attempts: 3, First: time.Hour, Max: time.Hour}}
	for range 100 {
		assert.LessOrEqual(t, s.backoff(1), 10*time.Second)
	}
}
