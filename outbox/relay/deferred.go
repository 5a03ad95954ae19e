package relay

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// deferEvents defers the events of a queue: they become rows of outbox_dead, so that the cursor can
// pass them.
func (f *flow) deferEvents(q *instanceQueue) {
	if q.logInCall {
		return // a call has them
	}
	most, count := f.policy.maxDeferred, f.deferred.count
	fits := count < most || count < 2*most && f.deferred.ofTenant[q.tenant] < most/32 // every tenant has a guaranteed share
	if f.policy.exhausted != Block && (q.deferred || fits) {
		for len(q.fromLog) > 0 {
			it := q.fromLog[0]
			if it.failure == "" {
				it.kind, it.failure = sink.Held, notTried
			}
			f.setRow(it, inspect.DeadQueued)
			f.dequeue(it)
			f.markDeferred(q, true)
		}
	}
	if q.state == backingOff || q.state == onHold {
		f.drop(&q.fromDead, 0) // they are read again
	}
}

const notTried = "not tried: an earlier event of its instance is undelivered"

// freeMemory frees memory: events that cannot be delivered now are deferred. If deferral is not
// allowed, their log is unloaded when other logs wait for a reader (contended) or memory is full.
func (f *flow) freeMemory(contended bool, now time.Time) {
	if f.circuit.mustSearch() && f.policy.exhausted != Block {
		f.circuit.searchedAt = f.circuit.failures
		for _, q := range f.queues {
			if q.state == ready && !q.deferred && f.circuit.failedGroups[groupOf(q.first())] {
				q.state, q.notBefore = backingOff, now.Add(probeMax)
				f.timers.set(q)
			}
		}
	}
	contended = contended || f.memory.reaches(2*f.policy.window, 2*windowBytes)
	for _, q := range f.queues {
		if len(q.fromLog) > 0 && (q.deferred || q.state == backingOff) {
			f.deferEvents(q)
		}
		if contended && len(q.fromLog) > 0 && q.state == backingOff {
			f.requestUnload(q.fromLog[0])
		}
	}
}

// addRows adds rows that were read to their queue. onHold reports that the remaining rows wait for
// an operator.
func (f *flow) addRows(q *instanceQueue, rows []queuedRow, onHold bool, now time.Time) {
	q.state = idle
	if f.draining {
		return
	}
	for i := range rows {
		r := &rows[i]
		it := &item{event: &r.event, queue: q, attempts: r.attempts, kind: r.kind, failure: r.failure}
		if r.removed {
			it.kind, it.failure = sink.Permanent, "the event is no longer in the outbox"
			f.setRow(it, inspect.DeadWaiting)
			if f.policy.exhausted == HoldInstance {
				break // the later rows wait for it and are read again
			}
			continue
		}
		f.seq++
		it.seq = f.seq
		q.fromDead = append(q.fromDead, it)
		f.items++
	}
	if len(rows) == 0 && q.unstored == 0 {
		q.onHold = onHold
		f.deferred.freed = f.deferred.freed || onHold
		f.markDeferred(q, onHold)
	}
	f.reschedule(q, now)
}

type queuedRow struct {
	event    transitions.Logged
	attempts int
	kind     sink.Kind
	failure  string
	removed  bool // the event was removed by retention
}

// deferredInstance is an instance that has rows in outbox_dead.
type deferredInstance struct {
	tenant   string
	instance uuid.UUID
	onHold   bool // its first row waits for an operator
}

// reloadDeferred replaces the set of deferred instances. For the tenants in full, list only contains
// instances that can be delivered; their logs are not read until they have fewer.
func (f *flow) reloadDeferred(list []deferredInstance, full map[string]bool, now time.Time) {
	freed := make([]*instanceQueue, 0, 16)
	for _, q := range f.queues {
		if q.onHold && !full[q.tenant] {
			q.onHold = false
			if q.state == onHold {
				freed = append(freed, q)
			}
		}
	}
	for _, a := range list {
		q := f.queue(instanceKey{a.tenant, a.instance})
		f.markDeferred(q, true)
		q.onHold = a.onHold
		if q.state == idle || q.state == ready || q.state == onHold && !a.onHold { // the other states find out when they change
			q.state = idle
			f.reschedule(q, now)
		}
	}
	for _, q := range freed {
		if q.state == onHold { // not in the list
			q.state = idle
			f.reschedule(q, now)
		}
	}
	f.deferred.unknown, f.deferred.full, f.deferred.freed = false, full, false
	if len(full) > 0 {
		f.pending.failure = fmt.Sprintf(
			"too many deferred instances of %d tenants, such as %q: their new events wait",
			len(full), slices.Min(slices.Collect(maps.Keys(full))))
	}
}

// rereadRows discards the rows in memory after an operator changed the sink, because some may have been
// skipped. It also lets a failing receiver be tried at once.
func (f *flow) rereadRows(now time.Time) {
	f.circuit.retry, f.circuit.retryUntried = now, now
	for _, q := range f.queues {
		switch {
		case q.state == inCall:
			q.stale = true
		case q.state == ready && q.deferred:
			f.drop(&q.fromDead, 0)
			q.state = idle
			f.reschedule(q, now)
		}
	}
}

func (f *flow) markDeferred(q *instanceQueue, deferred bool) {
	if deferred == q.deferred {
		return
	}
	q.deferred = deferred
	n := 1
	if !deferred {
		n, f.deferred.freed = -1, true
	}
	f.deferred.count += n
	if f.deferred.ofTenant[q.tenant] += n; f.deferred.ofTenant[q.tenant] == 0 {
		delete(f.deferred.ofTenant, q.tenant)
	}
}
