package relay

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

var policies = map[string]Exhausted{"park": Park, "hold": HoldInstance, "block": Block}

// Under random failures a cursor only passes events that are delivered or deferred, instances'
// events arrive in order, and all events that are not skipped arrive eventually.
func TestFlowKeepsOrderUnderRandomFailures(t *testing.T) {
	for name, exhausted := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unloaded, seeds := 0, uint64(400)
			if testing.Short() { // make test-long runs all
				seeds = 60
			}
			for seed := range seeds {
				unloaded += live(t, seed, exhausted, 600)
				require.Falsef(t, t.Failed(), "seed %d", seed)
			}
			assert.Equalf(t, (unloaded > 0), (exhausted == Block), "%d logs were unloaded", unloaded)
		})
	}
}

func FuzzFlow(f *testing.F) {
	f.Add(uint64(1), byte(0))
	f.Fuzz(func(t *testing.T, seed uint64, exhausted byte) { live(t, seed, Exhausted(exhausted%3), 1500) })
}

// live runs a world for some steps and then until it recovers. It returns the number of unloaded
// logs.
func live(t testing.TB, seed uint64, exhausted Exhausted, steps int) (unloaded int) {
	w := newWorld(t, seed, exhausted)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	for range steps {
		w.step()
		w.mustCount()
	}
	w.healthy, w.down = true, false
	for range 4000 {
		w.unhang()
		w.read()
		w.deliver()
		w.answer(true)
		w.exchange()
		w.operate(true)
		w.now = w.now.Add(500 * time.Millisecond)
		if w.complete() {
			w.mustCount()
			return w.unloaded
		}
	}
	t.Fatalf("seed %d: it does not come to its end: cursors %v, %d rows, flow %+v", seed, w.cursors, len(w.dead), w.flow)
	return 0
}

// flowOf returns a flow that has admitted a tenant's log, and its window.
func flowOf(log []transitions.Logged) (*flow, *logWindow) {
	f := newFlow(policy{attempts: 3, batch: 10, calls: 1, window: 100, maxDeferred: 10,
		backoff: func(int) time.Duration { return time.Millisecond }})
	f.reloadDeferred(nil, nil, time.Unix(0, 0))
	s := &logWindow{tenant: "t"}
	f.admit(s, log, nil, time.Unix(0, 0))
	return f, s
}

// logOf returns a log with a transition for each letter, of the instance of that name.
func logOf(instances string) (log []transitions.Logged) {
	for i, name := range []byte(instances) {
		log = append(log, transitions.Logged{Event: transitions.Event{Tenant: "t", Position: int64(i + 1), Type: "e", Instance: uuid.UUID{name}}})
	}
	return log
}

// Events behind a failure of their instance are delivered after it, whatever the sink returns for
// them.
func TestFailureHidesLaterResults(t *testing.T) {
	f, s := flowOf(logOf("aaa"))
	c := f.next(time.Unix(0, 0))
	f.applyResults(c, []*sink.Failure{nil, sink.Fail(sink.Temporary, nil, "no"), nil}, time.Unix(0, 0))
	assert.Truef(t, s.cursor() == 1 && f.pending.delivered == 1,
		"the cursor is at %d, and %d events count as delivered", s.cursor(), f.pending.delivered)
	c = f.next(time.Unix(1, 0))
	assert.Truef(t, len(c.events) == 2 && c.events[0].Position == 2 && c.events[1].Position == 3, "delivered next: %+v", c.events)
}

// While the receiver fails, one event at a time is tried, a different one each time and not before
// its time.
func TestFailingReceiverIsProbed(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	f, _ := flowOf(logOf("abcd"))
	f.policy.calls, f.policy.batch = 2, 1
	one, two := f.next(at(0)), f.next(at(0))
	down := sink.Fail(sink.Unavailable, nil, "down")
	f.applyResults(one, []*sink.Failure{down}, at(0))
	f.applyResults(two, []*sink.Failure{down}, at(0)) // in progress: no second failure in a row
	assert.Truef(t, f.circuit.failures == 1 && f.next(at(0)) == nil, "after it went down: %+v", f.circuit)
	probe := f.next(at(10))
	require.Truef(t, probe != nil && len(probe.events) == 1 && probe.events[0].Position == 3 && f.next(at(10)) == nil,
		"the probe is %+v", probe)
	longer := sink.Fail(sink.Unavailable, nil, "down")
	longer.RetryAfter = time.Minute
	f.applyResults(probe, []*sink.Failure{longer}, at(10))
	assert.Truef(t, f.circuit.failures == 2 && f.next(at(59_000)) == nil, "it is tried before its time: %+v", f.circuit)
	probe = f.next(at(61_000))
	require.Truef(t, probe != nil && probe.events[0].Position == 4, "the next probe is %+v", probe)
	f.applyResults(probe, []*sink.Failure{nil}, at(61_000))
	assert.Truef(t, !f.circuit.open && f.pending.delivered == 1, "after it came back: %+v", f.circuit)
	for range 3 { // events that met the failure may be its reason: it counts
		c := f.next(at(62_000))
		require.Truef(t, c != nil && c.items[0].attempts == 1, "%+v", c)
		f.applyResults(c, []*sink.Failure{nil}, at(62_000))
	}
}

// An operator redrives an older event of an instance while a transition has one parked, unstored
// event and one undelivered: the row cannot be stored before the cursor passes both.
func TestParkedEventWaitsForItsTransition(t *testing.T) {
	log := logOf("aa")
	log[1].Position, log[1].Type, log[1].Ordinal = 1, "f", 1
	f, s := flowOf(log)
	c := f.next(time.Unix(0, 0))
	f.applyResults(c, []*sink.Failure{sink.Fail(sink.Permanent, nil, "no"), sink.Fail(sink.Held, nil, "not tried")}, time.Unix(0, 0))
	f.reloadDeferred([]deferredInstance{{"t", log[0].Instance, false}}, nil, time.Unix(0, 0))
	l := f.takeBatch()
	assert.Truef(t, s.cursor() == 1 && len(l.newRows) == 2 && len(l.cursors) == 1 && len(l.fetch) == 1,
		"the cursor is at %d, the batch is %+v", s.cursor(), l)
}

// A batch whose reply is lost is sent again.
func TestLostBatchIsSentAgain(t *testing.T) {
	f, s := flowOf(logOf("ab"))
	f.applyResults(f.next(time.Unix(0, 0)), []*sink.Failure{sink.Fail(sink.Permanent, nil, "no"), nil}, time.Unix(0, 0))
	f.pending.changes = append(f.pending.changes, rowChange{status: inspect.DeadRedriven})
	first := f.takeBatch()
	f.requeueBatch(first, time.Unix(0, 0))
	again := f.takeBatch()
	assert.Truef(t, len(again.cursors) == 1 && again.cursors[0].position == 2 && len(again.newRows) == 1 && len(again.changes) == 1 &&
		again.delivered == 1 && again.failed == 1 && again.parked == 1 && again.failure == "no",
		"after the first was lost: %+v", again)
	f.noteStored(again)
	assert.Truef(t, !s.dirty() && s.events == 0 && f.memory.events == 0, "after it was stored: %+v", s)
	if next := f.takeBatch(); len(next.cursors)+len(next.newRows)+len(next.changes) != 0 || next.delivered != 0 {
		t.Errorf("the news are told twice: %+v", next)
	}
}

func (w *world) step() {
	switch n := w.random.IntN(100); {
	case n < 20:
		w.grow()
	case n < 35:
		w.read()
	case n < 60:
		w.deliver()
	case n < 78:
		w.answer(true)
	case n < 79:
		w.hang()
	case n < 80:
		w.unhang()
	case n < 90:
		w.exchange()
	case n < 94:
		w.now = w.now.Add(time.Duration(w.random.IntN(3000)) * time.Millisecond)
	case n < 96:
		w.operate(false)
	case n < 97:
		w.down, w.silent = !w.down, w.chance(50)
	case n < 98:
		w.crash()
	case n < 99 && w.chance(30):
		w.rest()
	case w.chance(20):
		w.move()
	default:
		w.reload = true
	}
}

// crash ends the lease at a random point.
func (w *world) crash() {
	for w.chance(50) {
		w.answer(false)
	}
	if w.batch != nil && w.chance(50) {
		w.store(w.batch)
	}
	w.start()
}

// rest ends the lease cleanly.
func (w *world) rest() {
	w.flow.drain(w.now)
	for range 10_000 {
		w.deliver()
		w.answer(true)
		if w.flow.drained() {
			break
		}
	}
	if !w.flow.drained() {
		w.t.Fatal("it does not come to rest")
	}
	if w.batch != nil {
		w.store(w.batch)
		w.flow.noteStored(w.batch)
	}
	w.store(w.flow.takeBatch())
	w.start()
}

// complete reports whether everything is delivered or skipped.
func (w *world) complete() bool {
	for _, r := range w.dead {
		if r.status == inspect.DeadWaiting || r.status == inspect.DeadQueued {
			return false
		}
	}
	for tenant, log := range w.logs {
		if w.cursors[tenant] != log[len(log)-1].Position {
			return false
		}
	}
	for at, r := range w.dead {
		if w.got[at] == 0 && r.status != inspect.DeadSkipped {
			w.t.Fatalf("%v is %s and was never delivered", at, r.status)
		}
	}
	return true
}
