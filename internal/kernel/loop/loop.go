// Package loop runs what a node does again and again in the background: a turn, a pause, the next turn.
package loop

import (
	"context"
	"sync"
	"time"
)

// Loop is one of them. New makes it.
type Loop struct {
	stop  context.CancelFunc // nil: it was not started
	work  sync.WaitGroup
	woken chan struct{} // one token
}

// New makes one; Start begins its work.
func New() *Loop { return &Loop{woken: make(chan struct{}, 1)} }

// Start takes turns until Stop: each says how long the pause after it is. In the end comes end, with a context that has not ended.
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

// Stop ends it, so that another node can take over, and returns when all work has ended. It may be called twice, and before Start.
func (l *Loop) Stop() {
	if l.stop != nil {
		l.stop()
	}
	l.work.Wait()
}

// Wake ends a pause.
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
