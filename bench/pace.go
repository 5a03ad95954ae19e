package bench

import (
	"context"
	"sync"
	"time"
)

// pace lets all callers together call so many times a second, evenly, until
// until is closed, and each once at least. A call's latency counts from when it
// was due: a caller that is late because of the call before makes up for it at
// once, and who waits for a slow answer is not forgotten. The first error ends it.
func pace(ctx context.Context, callers []caller, rate float64, until <-chan struct{}) (*sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tallies := make([]tally, len(callers))
	apart := time.Duration(float64(time.Second) / rate)
	var work sync.WaitGroup
	begin := time.Now()
	for i, call := range callers {
		work.Go(func() {
			if err := tallies[i].keep(ctx, call, begin.Add(time.Duration(i)*apart), time.Duration(len(callers))*apart, until); err != nil {
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

// keep calls at due and then every so often.
func (t *tally) keep(ctx context.Context, call caller, due time.Time, every time.Duration, until <-chan struct{}) error {
	t.latency = newHistogram()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ; ; due = due.Add(every) {
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		n, err := call(ctx)
		if err != nil {
			return err
		}
		t.latency.add(time.Since(due))
		t.commands += int64(n)
		select {
		case <-until:
			return nil
		default:
		}
	}
}

// after is closed when so much time has passed.
func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}
