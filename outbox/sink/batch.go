package sink

import (
	"context"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
)

// Batch tracks the results of one [Sink.Deliver]: which events failed and which must not be tried
// because of that. It is not safe for concurrent use.
type Batch struct {
	events   []transitions.Logged
	failures []*Failure // nil without failures
	behind   map[instance]struct{}
	stopped  bool
}

type instance struct {
	tenant string
	id     uuid.UUID
}

func instanceOf(e *transitions.Logged) instance { return instance{e.Tenant, e.Instance} }

// held is the failure of events that were not tried.
var held = Fail(Held, nil, "not tried: an earlier event of its instance or the whole receiver failed")

// NewBatch returns a batch for events.
func NewBatch(events []transitions.Logged) *Batch { return &Batch{events: events} }

// Skip reports whether the i-th event must not be tried, and records it as [Held]. Call it before
// each attempt.
func (b *Batch) Skip(i int) bool {
	if !b.stopped {
		if _, behind := b.behind[instanceOf(&b.events[i])]; !behind {
			return false
		}
	}
	if b.all()[i] == nil {
		b.failures[i] = held
	}
	return true
}

// Record records the result of the i-th event; nil means delivered.
func (b *Batch) Record(i int, f *Failure) {
	if f == nil {
		return
	}
	b.all()[i] = f
	if f.Kind.Whole() {
		b.stopped = true
	}
	if b.behind == nil {
		b.behind = make(map[instance]struct{})
	}
	b.behind[instanceOf(&b.events[i])] = struct{}{}
}

// Stop holds all events that have not been tried.
func (b *Batch) Stop() { b.stopped = true }

// Failures returns the result for [Sink.Deliver].
func (b *Batch) Failures() []*Failure { return b.failures }

func (b *Batch) all() []*Failure {
	if b.failures == nil {
		b.failures = make([]*Failure, len(b.events))
	}
	return b.failures
}

// InOrder delivers events sequentially with send.
func InOrder(ctx context.Context, events []transitions.Logged, send func(context.Context, *transitions.Logged) *Failure) []*Failure {
	b := NewBatch(events)
	for i := range events {
		if ctx.Err() != nil {
			b.Stop()
		}
		if !b.Skip(i) {
			b.Record(i, send(ctx, &events[i]))
		}
	}
	return b.Failures()
}

// Together fails all events: the first with f, a failure of the receiver, and the others as [Held].
// If ctx has ended, all are [Held].
func Together(ctx context.Context, events []transitions.Logged, f *Failure) []*Failure {
	return InOrder(ctx, events, func(context.Context, *transitions.Logged) *Failure { return f })
}

// Waves splits events into waves of different instances: the first event of each instance, then the
// second of each, and so on. A wave may be delivered in any order. Waves contain ascending indexes
// of events.
func Waves(events []transitions.Logged) [][]int {
	var waves [][]int
	seen := make(map[instance]int, len(events))
	for i := range events {
		n := seen[instanceOf(&events[i])]
		seen[instanceOf(&events[i])] = n + 1
		if n == len(waves) {
			waves = append(waves, nil)
		}
		waves[n] = append(waves[n], i)
	}
	return waves
}
