package bench

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/engine"
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
		eng, address, err := e.serve(ctx, engine.Config{Now: time.Now})
		if err != nil {
			return nil, err
		}
		head, err := eng.Head(ctx, tenant)
		if err != nil {
			return nil, err
		}
		c := &crowd{every: max(int64(subscribers*rate/sampled), 1)}
		e.later(func() error { c.leave(); return nil })
		for range subscribers {
			if err := c.join(ctx, address, head); err != nil {
				return nil, err
			}
		}
		runtime.GC()
		callers := submitters(e, eng, pacedCallers)
		warm, err := phase(ctx, callers, float64(rate), e.Duration/5)
		if err != nil {
			return nil, err
		}
		c.measured.Store(head + warm.all)
		s, err := phase(ctx, callers, float64(rate), e.Duration)
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
	s.reading.Go(s.read)
	return nil
}

// await returns when everybody has everything up to the position, or has had
// the time for it: what is lost then is counted.
func (c *crowd) await(ctx context.Context, position int64) error {
	_ = poll(ctx, 10*time.Millisecond, deliveryLimit, "lost", func() (bool, error) {
		for _, s := range c.members {
			if s.last.Load() < position && !s.cut.Load() {
				return false, nil
			}
		}
		return true, nil
	})
	return ctx.Err()
}

// leave ends every subscription and waits for its reader. It may be called
// twice.
func (c *crowd) leave() {
	for _, s := range c.members {
		s.leaving.Store(true)
		_ = s.ws.NetConn().Close() // nobody waits for more
		s.reading.Wait()
	}
}

// result ends the subscriptions and sums up what came of everything up to the
// position.
func (c *crowd) result(position int64) (latency, *delivery) {
	c.leave()
	var latencies []time.Duration
	d := &delivery{}
	for _, s := range c.members {
		latencies = append(latencies, s.latencies...)
		d.delivered += s.delivered
		d.disordered += s.disordered
		d.lost += s.lost + max(position-s.last.Load(), 0)
		if s.cut.Load() {
			d.cut++
		}
	}
	return latencyOf(latencies), d
}
