package bench

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
)

// A caller is one of those who do a scenario's work, one call after the other.
// Each call returns how many commands it has done.
type caller func(ctx context.Context) (commands int, err error)

// sample is one round of one scenario.
type sample struct {
	all      int64         // commands done, warm-up included
	commands int64         // commands done in the measured time
	took     time.Duration // the measured time
	latency  latency       // of the calls in the measured time
	cost     counters      // of all commands
	heap     float64       // at most, as a part of what the engine's queue and groups may have; 0: not measured
	stream   *delivery     // of a scenario with subscribers
	overload *overload     // of a scenario with more commands than can be done; the figures above are of those that were
	lag      latency       // of a scenario with sinks: from the decision of a transition to the end of its delivery
	amid     *amid         // of a scenario beside a migration
	after    float64       // commands a second after an old snapshot has ended
	purges   bool          // the engine purges beside it
	purged   float64       // and so many commands a second
}

func (s *sample) rate() float64 { return float64(s.commands) / s.took.Seconds() }

// latency is what is kept of many durations.
type latency struct {
	n        int
	p50, p99 time.Duration
}

func latencyOf(list []time.Duration) latency {
	if len(list) == 0 {
		return latency{}
	}
	slices.Sort(list)
	at := func(q float64) time.Duration { return list[int(q*float64(len(list)-1))] }
	return latency{len(list), at(0.50), at(0.99)}
}

// drive lets all callers call as fast as they are answered, first for a fifth of
// the time to warm up.
func (e *env) drive(ctx context.Context, callers []caller) (*sample, error) {
	warm, err := phase(ctx, callers, 0, e.Duration/5)
	if err != nil {
		return nil, err
	}
	s, err := phase(ctx, callers, 0, e.Duration)
	if err != nil {
		return nil, err
	}
	s.all += warm.all
	return s, nil
}

// phase lets all callers call for the duration d. Every caller calls at least once and finishes its current call, and the measured time
// ends with the last one. The first error ends it.
//
// Together they make rate calls per second, evenly, or as many as possible if rate is zero. At a rate, a call's latency counts from its due
// time: a caller that is late because of the call before catches up at once, so waiting for a slow answer is counted.
func phase(ctx context.Context, callers []caller, rate float64, d time.Duration) (*sample, error) {
	until := time.Now().Add(d)
	return phaseUntil(ctx, callers, rate, func(now time.Time) bool { return !now.Before(until) })
}

// phaseUntil is phase until it is over.
func phaseUntil(ctx context.Context, callers []caller, rate float64, over func(now time.Time) bool) (*sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var apart time.Duration
	if rate > 0 {
		apart = time.Duration(float64(time.Second) / rate)
	}
	tallies := make([]tally, len(callers))
	var work sync.WaitGroup
	begin := time.Now()
	for i, call := range callers {
		t := &tallies[i]
		t.due, t.every = begin.Add(time.Duration(i)*apart), time.Duration(len(callers))*apart
		work.Go(func() {
			if err := t.run(ctx, call, over); err != nil {
				cancel(err)
			}
		})
	}
	work.Wait()
	s := &sample{took: time.Since(begin)}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var latencies []time.Duration
	for _, t := range tallies {
		s.commands += t.commands
		latencies = append(latencies, t.latencies...)
	}
	s.all, s.latency = s.commands, latencyOf(latencies)
	return s, nil
}

// tally is what one caller did in one phase.
type tally struct {
	due       time.Time
	every     time.Duration // 0: at once
	commands  int64
	latencies []time.Duration
}

func (t *tally) run(ctx context.Context, call caller, over func(time.Time) bool) error {
	for ctx.Err() == nil {
		from := time.Now()
		if t.every > 0 {
			if !backoff.Sleep(ctx, t.due.Sub(from)) {
				return nil
			}
			from, t.due = t.due, t.due.Add(t.every)
		}
		n, err := call(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		t.latencies = append(t.latencies, now.Sub(from))
		t.commands += int64(n)
		if over(now) {
			return nil
		}
	}
	return nil
}
