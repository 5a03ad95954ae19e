package commit

import (
	"context"
	"sync"
	"time"
)

// lane is the side lane: the commands that have to wait for a lock, or that run
// the user's own SQL, wait and run here, so that they hold up nobody but the
// commands of the same route, which follow them here to keep their order.
type lane struct {
	p    *Pipeline
	work chan struct{} // tokens: one for each siding that is ready

	mu      sync.Mutex
	sidings map[uint64]*siding
	ready   []*siding
	closed  bool
	idle    chan struct{} // closed when the lane is closed and empty
}

// siding is one route's queue. It exists for as long as the route has commands
// here, waiting or running.
type siding struct {
	route uint64
	ops   []*op
}

func newLane(p *Pipeline) *lane {
	return &lane{p: p, sidings: map[uint64]*siding{}, work: make(chan struct{}, 1), idle: make(chan struct{})}
}

// has reports whether commands of the route are here.
func (l *lane) has(route uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sidings[route] != nil
}

// push adds commands, behind those of the same route.
func (l *lane) push(ops ...*op) {
	if len(ops) == 0 {
		return
	}
	deadline := time.Now().Add(l.p.config.LockWait)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range ops {
		o.deadline = deadline
		s := l.sidings[o.route]
		if s == nil {
			s = &siding{route: o.route}
			l.sidings[o.route] = s
			l.ready = append(l.ready, s)
		}
		s.ops = append(s.ops, o)
	}
	l.p.stats.aside.Add(int64(len(ops)))
	signal(l.work)
}

// next waits for a siding and takes the first commands of it: one with a hook,
// or several without. It returns nil when the lane is closed and empty.
func (l *lane) next() (*siding, []*op) {
	for {
		l.mu.Lock()
		if len(l.ready) > 0 {
			s := l.ready[0]
			l.ready = l.ready[1:]
			if len(l.ready) > 0 {
				signal(l.work)
			}
			n := 1
			for !s.ops[0].p.Hook && n < len(s.ops) && n < l.p.config.GroupSize && !s.ops[n].p.Hook {
				n++
			}
			ops := s.ops[:n:n]
			s.ops = s.ops[n:]
			l.mu.Unlock()
			return s, ops
		}
		ended := l.closed && len(l.sidings) == 0
		l.mu.Unlock()
		if ended {
			return nil, nil
		}
		select {
		case <-l.work:
		case <-l.idle:
		}
	}
}

// put gives a siding back: first what is to be tried again, then the rest. The
// siding goes when nothing is left of it.
func (l *lane) put(s *siding, again []*op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.ops = append(again[:len(again):len(again)], s.ops...)
	if len(s.ops) > 0 {
		l.ready = append(l.ready, s)
		signal(l.work)
		return
	}
	delete(l.sidings, s.route)
	if l.closed && len(l.sidings) == 0 {
		close(l.idle)
	}
}

// close lets the workers end once everything here is settled. Nothing may be
// pushed any more.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	if len(l.sidings) == 0 {
		close(l.idle)
	}
}

// loop works on one siding after the other.
func (l *lane) loop(ctx context.Context, r *runner) {
	defer r.drop()
	for {
		s, ops := l.next()
		if s == nil {
			return
		}
		l.put(s, l.try(ctx, r, ops))
	}
}

// try settles the ops, or returns those that have to wait longer.
func (l *lane) try(ctx context.Context, r *runner, ops []*op) []*op {
	_, reaction, err := r.run(ctx, ops, true)
	switch {
	case reaction == fine:
		return nil
	case reaction == blocked && ctx.Err() == nil:
		now := time.Now()
		waiting := ops[:0:0]
		for _, o := range ops {
			if o.gone() || now.After(o.deadline) {
				l.p.fail([]*op{o}, err, reaction)
				continue
			}
			waiting = append(waiting, o)
		}
		return waiting
	case reaction == poison && len(ops) > 1:
		l.p.stats.splits.Add(1)
		rest := l.try(ctx, r, ops[:len(ops)/2])
		return append(rest, l.try(ctx, r, ops[len(ops)/2:])...)
	}
	l.p.fail(ops, err, reaction)
	return nil
}
