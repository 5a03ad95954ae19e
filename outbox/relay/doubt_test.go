package relay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// An event that fails as if the receiver were down, while others are accepted, delays these by a
// single immediate probe. If it fails like this again, it delays nothing.
func TestEventFailingAsReceiverCostsOneProbe(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	whole := []*sink.Failure{sink.Fail(sink.Unavailable, nil, "404 Not Found")}
	taken := []*sink.Failure{nil}
	f, _ := flowOf(logOf("abcdefgh"))
	f.policy.calls, f.policy.batch = 2, 1

	bad, good := f.next(at(0)), f.next(at(0))
	culprit := bad.items[0]
	f.applyResults(good, taken, at(1))
	f.applyResults(bad, whole, at(1))
	probe := f.next(at(1))
	require.Truef(t, probe != nil && probe.probe && probe.items[0] != culprit && f.next(at(1)) == nil && f.circuit.failures == 0,
		"the probe is %+v, the circuit %+v", probe, f.circuit)
	f.applyResults(probe, taken, at(2))
	require.Truef(t, !f.circuit.open && culprit.attempts == 1, "after the probe: attempts %d, %+v", culprit.attempts, f.circuit)

	good, bad = f.next(at(10)), f.next(at(10))
	if good.items[0] == culprit {
		good, bad = bad, good
	}
	for bad.items[0] != culprit {
		f.applyResults(bad, taken, at(10))
		bad = f.next(at(10))
	}
	f.applyResults(good, taken, at(11))
	f.applyResults(bad, whole, at(11))
	assert.Truef(t, !f.circuit.open && culprit.attempts == 2, "after its second failure: attempts %d, %+v", culprit.attempts, f.circuit)
}

// An earlier failure of an event says nothing about the receiver if nothing else was accepted
// since. A RetryAfter of the receiver is respected.
func TestReceiverFailureNeedsNoProof(t *testing.T) {
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
			f.applyResults(c, []*sink.Failure{change(f, c.events)}, at(0))
			assert.Truef(t, f.circuit.open && f.circuit.failures == 1 && f.next(at(0)) == nil && c.items[0].attempts == 1,
				"attempts %d, %+v", c.items[0].attempts, f.circuit)
		})
	}
}
