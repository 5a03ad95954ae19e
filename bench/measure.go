package bench

import (
	"context"
	"sync"
	"time"
)

// A caller is one of those who do a scenario's work, one call after the other.
// Each call returns how many commands it has done.
type caller func(ctx context.Context) (commands int, err error)

// sample is one round of one scenario.
type sample struct {
	all      int64         // commands done, warm-up included
	commands int64         // commands done in the measured time
	took     time.Duration // the measured time
	latency  *histogram    // of the calls in the measured time
	cost     cost          // of all commands
	stream   *delivery     // of a scenario with subscribers
	relayed  *relayed      // of a scenario with sinks
	purged   float64       // commands a second that were purged beside it
}

func (s *sample) rate() float64 { return float64(s.commands) / s.took.Seconds() }

// phases are how long callers warm up and are measured.
type phases struct{ warm, timed time.Duration }

// drive lets all callers call at once for as long as the phases last. Every
// caller calls at least once in each and finishes the call that it has begun,
// and the measured time ends with the last one. The first error ends the round.
func drive(ctx context.Context, callers []caller, p phases) (*sample, error) {
	warm, err := phase(ctx, callers, p.warm)
	if err != nil {
		return nil, err
	}
	s, err := phase(ctx, callers, p.timed)
	if err != nil {
		return nil, err
	}
	s.all += warm.all
	return s, nil
}

func phase(ctx context.Context, callers []caller, d time.Duration) (*sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tallies := make([]tally, len(callers))
	var work sync.WaitGroup
	begin := time.Now()
	for i, call := range callers {
		work.Go(func() {
			if err := tallies[i].run(ctx, call, begin.Add(d)); err != nil {
				cancel(err)
			}
		})
	}
	work.Wait()
	took := time.Since(begin)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return sum(tallies, took), nil
}

// sum is what all callers did together.
func sum(tallies []tally, took time.Duration) *sample {
	s := &sample{took: took, latency: newHistogram()}
	for _, t := range tallies {
		s.all += t.commands
		s.latency.merge(t.latency)
	}
	s.commands = s.all
	return s
}

// tally is what one caller did in one phase.
type tally struct {
	commands int64
	latency  *histogram
}

func (t *tally) run(ctx context.Context, call caller, until time.Time) error {
	t.latency = newHistogram()
	for now := time.Now(); ctx.Err() == nil; {
		n, err := call(ctx)
		if err != nil {
			return err
		}
		end := time.Now()
		t.latency.add(end.Sub(now))
		t.commands += int64(n)
		if now = end; !now.Before(until) {
			break
		}
	}
	return nil
}
