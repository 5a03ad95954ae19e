package bench

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pause"
	"github.com/pawlhq/pawl/transitions"
)

// delivery is what reached the subscribers of one round.
type delivery struct {
	delivered  int64 // events of the measured time, over all subscribers
	lost       int64 // events that never came
	disordered int64 // events that came again, or after a later one
	cut        int64 // subscribers that the server cut off
}

// pacedCallers submit together at a given rate. They are many, so that a slow
// answer holds up few of the others.
const pacedCallers = 200

// sampled bounds how many deliveries a second have their latency taken: reading
// the time out of an event costs more than receiving it.
const sampled = 100_000

// deliveryLimit is how long after the last commit an event may still arrive.
const deliveryLimit = time.Minute

// streaming is a scenario of subscribers that follow the log over WebSocket
// while transitions are submitted at a steady rate. The latency is from the
// decision of a transition, which its event carries as its time, to the moment
// the subscriber has read the event from its socket. So the commit is in it.
func streaming(name string, subscribers, rate int) *scenario {
	return &scenario{name: name, section: theStreams, run: func(ctx context.Context, e *env) (*sample, error) {
		// The decisions take their time from the clock that the subscribers read.
		eng, address, stop, err := e.serve(ctx, engine.Config{Now: time.Now})
		if err != nil {
			return nil, err
		}
		defer stop()
		head, err := eng.Head(ctx, tenant)
		if err != nil {
			return nil, err
		}
		c := &crowd{every: max(int64(subscribers*rate/sampled), 1)}
		defer c.leave()
		for range subscribers {
			if err := c.join(ctx, address, head); err != nil {
				return nil, err
			}
		}
		runtime.GC()
		callers := make([]caller, pacedCallers)
		for i := range callers {
			callers[i] = paced(flips(e, firstCaller+i, pacedCallers), eng, i, rate)
		}
		warm, err := phase(ctx, callers, e.phases.warm)
		if err != nil {
			return nil, err
		}
		c.measured.Store(head + warm.all)
		s, err := phase(ctx, callers, e.phases.timed)
		if err != nil {
			return nil, err
		}
		s.all += warm.all
		if err := c.await(ctx, head+s.all); err != nil {
			return nil, err
		}
		s.latency, s.stream = c.result(head + s.all)
		return s, nil
	}}
}

// paced submits at its share of the rate. One that has fallen behind submits at
// once until it has caught up.
func paced(next func() transitions.Command, eng *engine.Engine, i, rate int) caller {
	gap := time.Second * pacedCallers / time.Duration(rate)
	due := time.Now().Add(gap * time.Duration(i) / pacedCallers)
	return func(ctx context.Context) (int, error) {
		if !pause.For(ctx, time.Until(due)) {
			return 0, ctx.Err()
		}
		due = due.Add(gap)
		r, err := eng.Submit(ctx, next())
		return 1, check(r, err, false)
	}
}

// crowd is all subscribers of a round.
type crowd struct {
	every    int64        // one in so many deliveries has its latency taken
	measured atomic.Int64 // the position after which it is taken; 0: not yet
	members  []*subscriber
}

// join adds a subscriber that has seen everything up to head.
func (c *crowd) join(ctx context.Context, address string, head int64) error {
	s, err := subscribe(ctx, address, head)
	if err != nil {
		return err
	}
	s.every, s.measured = c.every, &c.measured
	c.members = append(c.members, s)
	s.start()
	return nil
}

// await returns when everybody has everything up to the position, or has had
// the time for it.
func (c *crowd) await(ctx context.Context, position int64) error {
	for begun := time.Now(); time.Since(begun) < deliveryLimit; {
		if !pause.For(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
		waiting := false
		for _, s := range c.members {
			waiting = waiting || s.last.Load() < position && !s.cut.Load()
		}
		if !waiting {
			return nil
		}
	}
	return nil
}

// leave ends every subscription and waits for its reader. It may be called
// twice.
func (c *crowd) leave() {
	for _, s := range c.members {
		s.leave()
	}
}

// result ends the subscriptions and sums up what came of everything up to the
// position.
func (c *crowd) result(position int64) (*histogram, *delivery) {
	c.leave()
	latency, d := newHistogram(), &delivery{}
	for _, s := range c.members {
		latency.merge(s.latency)
		d.delivered += s.delivered
		d.disordered += s.disordered
		d.lost += s.lost + max(position-s.last.Load(), 0)
		if s.cut.Load() {
			d.cut++
		}
	}
	return latency, d
}
