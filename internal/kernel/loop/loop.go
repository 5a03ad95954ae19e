// Package loop runs periodic background work of a node.
package loop

import (
	"context"
	"sync"
	"time"
)

// Loop runs one function periodically.
type Loop struct {
	stop  context.CancelFunc // nil: it was not started
	work  sync.WaitGroup
	woken chan struct{} // one token
}

// New returns a loop; Start starts it.
func New() *Loop { return &Loop{woken: make(chan struct{}, 1)} }

// Start calls turn until Stop; turn returns the pause until the next call. At the end it calls end, with a context that is not done.
func (l *Loop) Start(turn func(ctx context.Context) time.Duration, end func(ctx context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.work.Go(func() {
		defer end(context.WithoutCancel(ctx))
		for ctx.Err() == nil {
			l.pause(ctx, turn(ctx))
		}
	})
}

// Stop stops the loop and waits for its work. It may be called twice, and before Start.
func (l *Loop) Stop() {
	if l.stop != nil {
		l.stop()
	}
	l.work.Wait()
}

// Wake ends the current pause.
func (l *Loop) Wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

func (l *Loop) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.woken:
	case <-ctx.Done():
	}
}
