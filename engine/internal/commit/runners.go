package commit

import (
	"context"
	"fmt"
	"time"
)

// runners is a pool of connections that run groups. A group takes an open one. If none is returned shortly, one more is opened, and only
// one at a time, so the pool has about as many as are needed. Opening one and preparing its statements costs the server ten milliseconds of
// processor time or more, and closing one that has touched all of the shared buffers as much; when a node starts or is killed, all others
// wait for that.
type runners struct {
	open, closed chan *runner
	opening      chan struct{} // whoever opens one has the place in it
}

const (
	shortly      = 2 * time.Millisecond  // after its answer a group's connection is busy for a moment
	openingLimit = 50 * time.Millisecond // how long one waits while another opens a connection
)

// newRunners makes n, with numbered names. No more than n may run groups at one time.
func (pipe *Pipeline) newRunners(n int, name string, lockTimeout time.Duration) *runners {
	s := &runners{open: make(chan *runner, n), closed: make(chan *runner, n), opening: make(chan struct{}, 1)}
	for i := range n {
		s.put(pipe.newRunner(fmt.Sprintf("%s %d", name, i+1), lockTimeout))
	}
	return s
}

// run runs a group on one of them.
func (s *runners) run(ctx context.Context, ops []*op, retry, waiting bool) (leftover, reaction, error) {
	r := s.take(ctx)
	defer s.put(r)
	return r.run(ctx, ops, retry, waiting)
}

// take takes one, if it can one that is open.
func (s *runners) take(ctx context.Context) *runner {
	if r := s.openWithin(shortly); r != nil {
		return r
	}
	limit := time.NewTimer(openingLimit)
	defer limit.Stop()
	select {
	case r := <-s.open:
		return r
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
		r := s.takeAny()
		if r.pg == nil {
			_ = r.dial(ctx) // it dials again when it runs, and says why it cannot
		}
		return r
	case <-limit.C:
		return s.takeAny()
	}
}

// openWithin takes one that is open, if there is one in time.
func (s *runners) openWithin(d time.Duration) *runner {
	select {
	case r := <-s.open:
		return r
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case r := <-s.open:
		return r
	case <-timer.C:
		return nil
	}
}

// takeAny takes one that is open, or else any.
func (s *runners) takeAny() *runner {
	select {
	case r := <-s.open:
		return r
	default:
	}
	select {
	case r := <-s.open:
		return r
	case r := <-s.closed:
		return r
	}
}

func (s *runners) put(r *runner) {
	if r.pg == nil {
		s.closed <- r
	} else {
		s.open <- r
	}
}

// drop closes the connections. Nobody runs a group any more.
func (s *runners) drop() {
	for range cap(s.open) {
		s.takeAny().drop()
	}
}
