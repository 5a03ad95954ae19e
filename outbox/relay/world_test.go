package relay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// world simulates everything around a flow in memory: logs, tables, a receiver, operators and a
// clock. A seed determines the events.
type world struct {
	t      testing.TB
	random *rand.Rand
	policy policy
	now    time.Time

	flow    *flow
	windows map[string]*logWindow
	calls   []*call
	hung    []*call     // abandoned calls
	batch   *storeBatch // in progress
	reload  bool        // operators changed something

	logs    map[string][]transitions.Logged
	cursors map[string]int64
	dead    map[address]*deadRow

	got             map[address]int  // deliveries
	gaveUp          map[address]bool // may have become dead letters
	removed         map[address]bool // removed from the outbox before a redrive
	trouble         map[address]trouble
	failed          map[address]int
	moved           map[string]int64 // revision of the last move of each tenant's cursor
	excused         map[address]bool // skipped by an operator before a cursor moved back
	down, silent    bool             // the receiver fails; silent: as if its events failed
	revision, known int64            // of the sink, and as known by the holder
	healthy         bool             // all failures are over
	unloaded        int              // logs that were unloaded
}

// address identifies an event.
type address struct {
	tenant   string
	position int64
	ordinal  int
}

func addressOf(e *transitions.Event) address { return address{e.Tenant, e.Position, e.Ordinal} }

func (a address) before(b address) bool {
	return a.position < b.position || a.position == b.position && a.ordinal < b.ordinal
}

// trouble is the behaviour of the receiver for an event.
type trouble struct {
	temporary int // number of failures
	never     bool
	poison    bool // fails the whole receiver
}

type deadRow struct {
	instance uuid.UUID
	status   inspect.DeadStatus
	attempts int
	kind     sink.Kind
	failure  string
	by       bool // changed by an operator
}

func newWorld(t testing.TB, seed uint64, exhausted Exhausted) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1e9, 0), cursors: map[string]int64{},
		dead: map[address]*deadRow{},
		logs: map[string][]transitions.Logged{}, got: map[address]int{}, gaveUp: map[address]bool{}, removed: map[address]bool{},
		trouble: map[address]trouble{},
		failed:  map[address]int{}, moved: map[string]int64{}, excused: map[address]bool{}}
	w.policy = policy{exhausted: exhausted, attempts: 1 + w.random.IntN(4), batch: 1 + w.random.IntN(8), calls: 1 + w.random.IntN(4),
		window: 4 + w.random.IntN(40), maxDeferred: 1 + w.random.IntN(12),
		backoff: func(n int) time.Duration { return time.Duration(w.random.IntN(800*n)+1) * time.Millisecond }}
	w.start()
	return w
}

// start begins a lease with a flow that only knows the tables.
func (w *world) start() {
	w.flow, w.windows, w.calls, w.hung, w.batch, w.reload = newFlow(w.policy), map[string]*logWindow{}, nil, nil, nil, true
	w.known = w.revision
}

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

// grow commits a transition.
func (w *world) grow() {
	tenant := fmt.Sprint("t", w.random.IntN(2))
	log := w.logs[tenant]
	position := int64(1)
	if n := len(log); n > 0 {
		position = log[n-1].Position + 1
	}
	instance := uuid.UUID{byte(w.random.IntN(6))}
	for ordinal := range 1 + w.random.IntN(2) {
		e := transitions.Event{Tenant: tenant, Position: position, Ordinal: ordinal, Type: fmt.Sprint("e.", ordinal), Instance: instance}
		log = append(log, transitions.Logged{Event: e, CloudEvent: make([]byte, 100)})
		switch {
		case w.chance(3):
			w.trouble[addressOf(&e)] = trouble{never: true}
		case w.chance(10):
			w.trouble[addressOf(&e)] = trouble{temporary: 1 + w.random.IntN(5)}
		case w.chance(1):
			w.trouble[addressOf(&e)] = trouble{poison: true}
		}
	}
	w.logs[tenant] = log
}

// read admits pieces of the logs.
func (w *world) read() {
	for _, tenant := range slices.Sorted(maps.Keys(w.logs)) {
		log := w.logs[tenant]
		s := w.windows[tenant]
		if s == nil {
			s = &logWindow{tenant: tenant, revision: w.revision, stored: w.cursors[tenant], read: w.cursors[tenant]}
			w.windows[tenant] = s
		}
		from, _ := slices.BinarySearchFunc(log, s.read+1, func(e transitions.Logged, p int64) int { return cmp.Compare(e.Position, p) })
		to := min(from+1+w.random.IntN(10), len(log))
		for to < len(log) && to > from && log[to].Position == log[to-1].Position {
			to++
		}
		wanted := make([]bool, to-from)
		for i := range wanted {
			wanted[i] = wants(&log[from+i].Event)
		}
		w.flow.admit(s, log[from:to:to], wanted, w.now)
	}
}

// wants is the sink's filter.
func wants(e *transitions.Event) bool {
	switch e.Instance[0] {
	case 5:
		return false
	case 4:
		return e.Ordinal == 0
	case 3:
		return e.Ordinal == 1
	}
	return true
}

// deliver starts all possible calls.
func (w *world) deliver() {
	for c := w.flow.next(w.now); c != nil; c = w.flow.next(w.now) {
		for i := range c.events {
			e := &c.events[i]
			for _, other := range slices.Concat(w.calls, w.hung) {
				if slices.ContainsFunc(other.events, func(o transitions.Logged) bool { return o.Tenant == e.Tenant && o.Instance == e.Instance }) {
					w.t.Fatalf("%s/%v is in two calls", e.Tenant, e.Instance)
				}
			}
			for j := range i {
				o := &c.events[j]
				if o.Tenant == e.Tenant && o.Instance == e.Instance && !addressOf(&o.Event).before(addressOf(&e.Event)) {
					w.t.Fatalf("a call is not in the order of the log: %s before %s", o.ID(), e.ID())
				}
			}
		}
		w.calls = append(w.calls, c)
	}
	if n := len(w.calls) + len(w.hung); n > w.policy.calls {
		w.t.Fatalf("%d calls at once", n)
	}
	if w.flow.stalled() {
		w.flow.freeMemory(w.chance(20), w.now)
	}
	w.unload()
}

// unload unloads logs in backoff, which may be read again early.
func (w *world) unload() {
	for _, t := range w.flow.unloadable {
		if w.windows[t.window.tenant] != t.window || w.flow.draining {
			continue
		}
		if next, _ := w.flow.unload(t, w.now); next != nil {
			w.windows[t.window.tenant] = next
			w.unloaded++
		}
	}
	w.flow.unloadable = nil
}

// hang lets a call exceed its timeout.
func (w *world) hang() {
	if len(w.calls) == 0 {
		return
	}
	i := w.random.IntN(len(w.calls))
	c := w.calls[i]
	seen := map[instanceKey]bool{}
	for _, it := range c.items {
		if at := addressOf(&it.event.Event); !seen[it.queue.instanceKey] {
			seen[it.queue.instanceKey] = true
			w.failed[at]++
			w.gaveUp[at] = w.gaveUp[at] || w.failed[at] >= w.policy.attempts
		}
	}
	w.calls = slices.Delete(w.calls, i, i+1)
	w.hung = append(w.hung, c)
	w.flow.abandon(c, w.now)
}

// unhang ends an abandoned call.
func (w *world) unhang() {
	if len(w.hung) == 0 {
		return
	}
	c := w.hung[0]
	w.hung = w.hung[1:]
	sink.InOrder(context.Background(), c.events, func(_ context.Context, e *transitions.Logged) *sink.Failure { return w.receive(&e.Event) })
	w.flow.callEnded(c, w.now)
}

// answer completes a call. Without settle the relay crashes before it sees the result.
func (w *world) answer(settle bool) {
	if len(w.calls) == 0 {
		return
	}
	i := w.random.IntN(len(w.calls))
	c := w.calls[i]
	failures := sink.InOrder(context.Background(), c.events, func(_ context.Context, e *transitions.Logged) *sink.Failure {
		return w.receive(&e.Event)
	})
	if settle {
		w.calls = slices.Delete(w.calls, i, i+1)
		if failures == nil {
			failures = make([]*sink.Failure, len(c.events))
		}
		w.flow.applyResults(c, failures, w.now)
	}
}

// receive is the receiver.
func (w *world) receive(e *transitions.Event) *sink.Failure {
	at := addressOf(e)
	trouble := w.trouble[at]
	w.failed[at]++ // unless delivered
	switch {
	case w.healthy:
	case w.down || trouble.poison:
		w.gaveUp[at] = w.gaveUp[at] || w.failed[at] >= w.policy.attempts
		if w.silent {
			return sink.Fail(sink.Temporary, nil, "down, and it does not say so")
		}
		return sink.Fail(sink.Unavailable, nil, "down")
	case trouble.never:
		w.gaveUp[at] = true
		return sink.Fail(sink.Permanent, nil, "never")
	case w.failed[at] <= trouble.temporary:
		w.gaveUp[at] = w.gaveUp[at] || w.failed[at] >= w.policy.attempts
		f := sink.Fail(sink.Temporary, nil, "not now")
		if w.chance(10) {
			f.RetryAfter = time.Minute
		}
		return f
	}
	w.failed[at] = 0
	if w.got[at] == 0 {
		w.mustBeInOrder(e, at)
	}
	w.got[at]++
	return nil
}

// mustBeInOrder checks that earlier deliverable events of the instance are delivered.
func (w *world) mustBeInOrder(e *transitions.Event, at address) {
	for i := range w.logs[e.Tenant] {
		o := &w.logs[e.Tenant][i].Event
		earlier := addressOf(o)
		if o.Instance != e.Instance || !earlier.before(at) || w.got[earlier] > 0 || !wants(o) {
			continue
		}
		row := w.dead[earlier]
		skipped := row != nil && row.status == inspect.DeadSkipped
		if !skipped && !w.excused[earlier] && (w.policy.exhausted != Park || !w.gaveUp[earlier]) {
			w.t.Fatalf("%s/%s is delivered before %s, which was not given up (row %+v)", e.Tenant, e.ID(), o.ID(), row)
		}
	}
}

// exchange sends a batch or processes its reply. Some are lost.
func (w *world) exchange() {
	if w.batch == nil {
		w.batch = w.flow.takeBatch()
		w.batch.reload, w.batch.knownMoves = w.reload, w.known
		w.reload = false
		return
	}
	b := w.batch
	w.batch = nil
	lost := !w.healthy && w.chance(10)
	rows, onHold := map[*instanceQueue][]queuedRow{}, map[*instanceQueue]bool{}
	var list []deferredInstance
	if !lost || w.chance(50) {
		w.store(b)
		for _, q := range b.fetch {
			rows[q], onHold[q] = w.rowsOf(q)
		}
		if b.reload {
			list = w.deferred()
		}
	}
	if lost {
		w.reload = w.reload || b.reload
		w.flow.requeueBatch(b, w.now)
		return
	}
	w.flow.noteStored(b)
	w.readAnew(b)
	if b.reload {
		w.flow.rereadRows(w.now)
		w.flow.reloadDeferred(list, nil, w.now)
	}
	for _, q := range b.fetch {
		w.flow.addRows(q, rows[q], onHold[q], w.now)
	}
}

// store applies a batch as the statements do.
func (w *world) store(b *storeBatch) {
	for tenant, n := range byTenant(b.newRows) {
		if w.moved[tenant] > b.movesKnown(n.window) {
			continue
		}
		for i, position := range n.positions {
			at := address{tenant, position, int(n.ordinals[i])}
			if w.dead[at] != nil {
				continue
			}
			w.dead[at] = &deadRow{instance: uuid.MustParse(n.instances[i]), status: inspect.DeadStatus(n.statuses[i]),
				attempts: int(n.attempts[i]), kind: sink.Kind(n.kinds[i]), failure: n.failures[i]}
		}
	}
	for tenant, n := range byTenant(b.changes) {
		for i, position := range n.positions {
			at := address{tenant, position, int(n.ordinals[i])}
			r := w.dead[at]
			switch {
			case r == nil || r.status != inspect.DeadQueued || w.revision > n.asOf[i]:
			case inspect.DeadStatus(n.statuses[i]) == inspect.DeadRedriven && !r.by:
				delete(w.dead, at)
			default:
				r.status, r.attempts = inspect.DeadStatus(n.statuses[i]), int(n.attempts[i])
			}
		}
	}
	for _, c := range b.cursors {
		if w.moved[c.window.tenant] > b.movesKnown(c.window) {
			continue
		}
		if c.position < w.cursors[c.window.tenant] {
			w.t.Fatalf("the cursor goes back to %d from %d", c.position, w.cursors[c.window.tenant])
		}
		w.cursors[c.window.tenant] = c.position
	}
	w.mustBeWhole()
}

// move moves a cursor back, as an operator does.
func (w *world) move() {
	tenant := fmt.Sprint("t", w.random.IntN(2))
	if w.cursors[tenant] == 0 {
		return
	}
	w.revision++
	w.moved[tenant], w.cursors[tenant] = w.revision, w.random.Int64N(w.cursors[tenant])
	for at := range w.dead {
		if at.tenant == tenant && at.position > w.cursors[tenant] {
			w.excused[at] = w.got[at] == 0
			delete(w.dead, at)
		}
	}
	w.reload = true
}

// readAnew reloads moved logs, as after the reply to a batch.
func (w *world) readAnew(b *storeBatch) {
	for _, tenant := range slices.Sorted(maps.Keys(w.moved)) {
		if s := w.windows[tenant]; s != nil && w.moved[tenant] > b.movesKnown(s) {
			w.flow.discard(s, w.now)
			delete(w.windows, tenant)
		}
	}
	w.known = w.revision
}

// mustBeWhole checks that everything up to the cursors is delivered or a row.
func (w *world) mustBeWhole() {
	for tenant, cursor := range w.cursors {
		for i := range w.logs[tenant] {
			e := &w.logs[tenant][i].Event
			at := addressOf(e)
			if !wants(e) {
				if w.got[at] > 0 || w.dead[at] != nil {
					w.t.Fatalf("%s is not wanted", e.ID())
				}
				continue
			}
			if e.Position <= cursor && w.got[at] == 0 && w.dead[at] == nil {
				w.t.Fatalf("the cursor of %s is at %d, and %s is nowhere", tenant, cursor, e.ID())
			}
			if e.Position > cursor && w.dead[at] != nil {
				w.t.Fatalf("the cursor of %s is at %d, and %s is deferred", tenant, cursor, e.ID())
			}
		}
	}
}

// rowsOf returns the first queued rows of a queue.
func (w *world) rowsOf(l *instanceQueue) (rows []queuedRow, onHold bool) {
	for i := range w.logs[l.tenant] {
		e := &w.logs[l.tenant][i]
		r := w.dead[addressOf(&e.Event)]
		if r == nil || e.Instance != l.instance {
			continue
		}
		if r.status == inspect.DeadWaiting && w.policy.exhausted == HoldInstance {
			return rows, true
		}
		if r.status == inspect.DeadQueued && len(rows) < 3 {
			rows = append(rows, queuedRow{event: *e, attempts: r.attempts, kind: r.kind, failure: r.failure,
				removed: w.removed[addressOf(&e.Event)] && !w.healthy})
		}
	}
	return rows, false
}

// deferred returns the instances whose rows precede the log.
func (w *world) deferred() (list []deferredInstance) {
	onHold := map[instanceKey]bool{}
	for at, r := range w.dead {
		k := instanceKey{at.tenant, r.instance}
		switch {
		case r.status == inspect.DeadQueued:
			onHold[k] = false
		case r.status == inspect.DeadWaiting && w.policy.exhausted == HoldInstance:
			if _, known := onHold[k]; !known {
				onHold[k] = true
			}
		}
	}
	for k, b := range onHold {
		list = append(list, deferredInstance{k.tenant, k.instance, b})
	}
	return list
}

// operate changes a dead letter, as an operator does.
func (w *world) operate(redriveOnly bool) {
	var waiting []address
	for at, r := range w.dead {
		if r.status == inspect.DeadWaiting {
			waiting = append(waiting, at)
		}
	}
	if len(waiting) == 0 {
		return
	}
	slices.SortFunc(waiting, func(a, b address) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.position, b.position), a.ordinal-b.ordinal)
	})
	at := waiting[w.random.IntN(len(waiting))]
	r := w.dead[at]
	w.revision++
	r.status, r.by, r.attempts = inspect.DeadQueued, true, 0
	switch {
	case redriveOnly:
	case w.chance(30):
		r.status = inspect.DeadSkipped
	case w.chance(20):
		w.removed[at] = true
	}
	w.reload = true
}

// mustCount checks the flow's counters.
func (w *world) mustCount() {
	f := w.flow
	items, deferred, out := 0, 0, 0
	for k, l := range f.queues {
		items += len(l.fromLog) + len(l.fromDead)
		if l.deferred {
			deferred++
		}
		if l.instanceKey != k || l.state == idle {
			w.t.Fatalf("queue %+v of %v", l, k)
		}
	}
	for _, c := range w.calls {
		out += len(c.items)
	}
	events, bytes := 0, 0
	for _, s := range w.windows {
		for _, m := range s.positions {
			events += m.events
			bytes += m.bytes
		}
	}
	if items != f.items || deferred != f.deferred.count || out != f.calls.items || events != f.memory.events || bytes != f.memory.bytes ||
		len(w.calls)+len(w.hung) != f.calls.open || len(w.hung) != f.calls.abandoned {
		w.t.Fatalf("counted items %d, deferred %d, out %d, events %d, bytes %d, calls %d; the flow says %d, %d, %d, %d, %d, %d", items, deferred, out,
			events, bytes, len(w.calls), f.items, f.deferred.count, f.calls.items, f.memory.events, f.memory.bytes, f.calls.open)
	}
	of := map[string]int{}
	for _, l := range f.queues {
		if l.deferred {
			of[l.tenant]++
		}
	}
	if !maps.Equal(of, f.deferred.ofTenant) {
		w.t.Fatalf("counted deferred by tenant %v; the flow says %v", of, f.deferred.ofTenant)
	}
	if most := 2*w.policy.window + 3; events > most {
		w.t.Fatalf("%d events in a window of %d", events, w.policy.window)
	}
}
