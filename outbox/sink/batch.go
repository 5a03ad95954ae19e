package sink

import (
	"context"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
)

// Batch is the book-keeping of one [Sink.Deliver]: what failed, and what must
// not be tried because of it. It is for one goroutine.
type Batch struct {
	events   []transitions.Logged
	failures []*Failure // nil while there is none
	behind   map[instance]struct{}
	stopped  bool
}

// instance names an instance across tenants.
type instance struct {
	tenant string
	id     uuid.UUID
}

func instanceOf(e *transitions.Logged) instance { return instance{e.Tenant, e.Instance} }

// held is the failure of whatever was not tried.
var held = Fail(Held, nil, "was not tried: an earlier event of its instance, or the receiver as a whole, failed")

// NewBatch begins to keep the results of events.
func NewBatch(events []transitions.Logged) *Batch { return &Batch{events: events} }

// Skip reports whether the i-th event must not be tried, and records it as
// [Held] then. It has to be asked before each attempt.
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

// Record records what became of the i-th event; nil is a delivery.
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

// Stop holds everything that is not tried yet.
func (b *Batch) Stop() { b.stopped = true }

// Failures is what [Sink.Deliver] returns.
func (b *Batch) Failures() []*Failure { return b.failures }

func (b *Batch) all() []*Failure {
	if b.failures == nil {
		b.failures = make([]*Failure, len(b.events))
	}
	return b.failures
}

// InOrder delivers events one after the other with send.
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

// Together fails events that share one fate: the first of them with f, which is
// about the receiver, and the others are [Held]; all are if ctx has ended.
func Together(ctx context.Context, events []transitions.Logged, f *Failure) []*Failure {
	return InOrder(ctx, events, func(context.Context, *transitions.Logged) *Failure { return f })
}

// Waves splits events so that those of one wave are of different instances: the
// first event of each instance, then the second of each, and so on. So a wave
// may be delivered in any order. The waves hold indexes of events, ascending.
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
