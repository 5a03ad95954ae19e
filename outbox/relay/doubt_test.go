package relay

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// An event for which the receiver says that it takes nothing, while it takes others,
// stops these for one probe, which is made at once; and when it fails like that again
// it stops nothing.
func TestEventThatFailsForTheReceiverStopsTheOthersForOneProbe(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	whole := []*sink.Failure{sink.Fail(sink.Unavailable, nil, "404 Not Found")}
	taken := []*sink.Failure{nil}
	f, _ := flowOf(logOf("abcdefgh"))
	f.policy.calls, f.policy.batch = 2, 1

	bad, good := f.next(at(0)), f.next(at(0))
	culprit := bad.items[0]
	f.settle(good, taken, at(1))
	f.settle(bad, whole, at(1))
	probe := f.next(at(1))
	if probe == nil || !probe.probe || probe.items[0] == culprit || f.next(at(1)) != nil || f.circuit.failures != 0 {
		t.Fatalf("the probe is %+v, the circuit %+v", probe, f.circuit)
	}
	f.settle(probe, taken, at(2))
	if f.circuit.open || culprit.attempts != 1 {
		t.Fatalf("after the probe: attempts %d, %+v", culprit.attempts, f.circuit)
	}

	good, bad = f.next(at(10)), f.next(at(10))
	if good.items[0] == culprit {
		good, bad = bad, good
	}
	for bad.items[0] != culprit {
		f.settle(bad, taken, at(10))
		bad = f.next(at(10))
	}
	f.settle(good, taken, at(11))
	f.settle(bad, whole, at(11))
	if f.circuit.open || culprit.attempts != 2 {
		t.Errorf("after its second failure: attempts %d, %+v", culprit.attempts, f.circuit)
	}
}

// When nothing else is accepted meanwhile, that an event has failed before says
// nothing about the receiver; and a receiver that asks for time is given it.
func TestReceiverIsBelievedWhereNothingSpeaksAgainstIt(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for name, change := range map[string]func(f *flow, events []transitions.Logged) *sink.Failure{
		"nothing was accepted": func(f *flow, events []transitions.Logged) *sink.Failure {
			return sink.Fail(sink.Unavailable, nil, "down")
		},
		"it asks for time": func(f *flow, events []transitions.Logged) *sink.Failure {
			f.calls.accepted++
			failure := sink.Fail(sink.Unavailable, nil, "429 Too Many Requests")
			failure.RetryAfter = time.Minute
			return failure
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := flowOf(logOf("ab"))
			f.policy.batch = 1
			c := f.next(at(0))
			c.items[0].attempts, c.items[0].kind = 1, sink.Unavailable
			f.settle(c, []*sink.Failure{change(f, c.events)}, at(0))
			if !f.circuit.open || f.circuit.failures != 1 || f.next(at(0)) != nil || c.items[0].attempts != 1 {
				t.Errorf("attempts %d, %+v", c.items[0].attempts, f.circuit)
			}
		})
	}
}
