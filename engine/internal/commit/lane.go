package commit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// lane is the side lane: the commands that somebody else's lock keeps waiting,
// and those that run the user's own SQL, are here, so that they hold up nobody
// but the later commands of the same route, which follow them to keep their
// order.
//
// Held instances are tried again together, a group at a time, with SKIP LOCKED
// and a growing pause, so that a thousand of them cost no more than one. Two
// things need more: an uncommitted key, which cannot be seen that way, and an
// instance that others stand in line for, which is never free at the moment of a
// look. So a group that is blocked is taken apart, and a siding that was held
// for many tries gets a turn: its first command is tried alone, waiting inside
// of the database for as long as lock_timeout allows. One worker always stays
// free of that.
type lane struct {
	p    *Pipeline
	work chan struct{} // one token: there may be something to do

	mu      sync.Mutex
	sidings map[uint64]*siding // all, also those being worked on
	ready   []*siding          // to be worked on, in order
	later   []*siding          // to be tried again at their time
	alone   int                // sidings being tried alone
	turns   int                // sidings that are to be tried alone, those included
	held    map[string]bool    // tenants whose log's head somebody holds
	closed  bool
	idle    chan struct{} // closed when the lane is closed and empty
}

// siding is one route's queue. It exists for as long as the route has commands
// here, waiting or running.
type siding struct {
	route uint64
	ops   []*op
	tries int       // in vain, since something was done
	due   time.Time // when it is tried again
	alone bool      // its first command is to be tried alone, waiting
}

// tenant is whose commands these are; a route is of one tenant.
func (s *siding) tenant() string { return s.ops[0].p.Tenant }

// hooked reports whether the next command runs the user's SQL.
func (s *siding) hooked() bool { return s.ops[0].p.Hook }

// part takes commands off the front: one that is to be alone or has a hook, else
// as many without as fit.
func (s *siding) part(limit int) []*op {
	n := 1
	for !s.alone && !s.hooked() && n < min(len(s.ops), limit) && !s.ops[n].p.Hook {
		n++
	}
	ops := s.ops[:n:n]
	s.ops = s.ops[n:]
	return ops
}

func newLane(p *Pipeline) *lane {
	return &lane{p: p, sidings: map[uint64]*siding{}, held: map[string]bool{}, work: make(chan struct{}, 1), idle: make(chan struct{})}
}

// takes reports whether a command belongs here: others of its route are here, or
// its tenant's log cannot be written.
func (l *lane) takes(o *op) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sidings[o.route] != nil || l.held[o.p.Tenant]
}

// setHeld notes that the log that the error names cannot be written for now. All
// commands of that tenant come here, and of no other.
func (l *lane) setHeld(err error) (tenant string) {
	head, ok := errors.AsType[*headError](err)
	if !ok {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[head.tenant] = true
	return head.tenant
}

// free notes that the tenant's log was written.
func (l *lane) free(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, tenant)
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

// job is what a worker does at once: commands of one siding that have to run
// alone, or of several.
type job struct {
	sidings []*siding
	parts   [][]*op // of each siding
	alone   bool
}

func (j *job) ops() []*op { return slices.Concat(j.parts...) }

// next waits for something to do. It returns nil when the lane is closed and
// empty. When ctx has ended everything is due, to be given up.
func (l *lane) next(ctx context.Context) *job {
	for {
		l.mu.Lock()
		wait := l.wakeDue(ctx)
		if j := l.pick(); j != nil {
			if len(l.ready) > 0 {
				signal(l.work)
			}
			l.mu.Unlock()
			return j
		}
		ended := l.closed && len(l.sidings) == 0
		l.mu.Unlock()
		if ended {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-l.work:
		case <-timer.C:
		case <-l.idle:
		}
		timer.Stop()
	}
}

// wakeDue makes ready what is due, and says how long nothing else will be.
func (l *lane) wakeDue(ctx context.Context) time.Duration {
	wait := time.Minute
	now := time.Now()
	l.later = slices.DeleteFunc(l.later, func(s *siding) bool {
		left := s.due.Sub(now)
		if left <= 0 || ctx.Err() != nil {
			l.ready = append(l.ready, s)
			return true
		}
		wait = min(wait, left)
		return false
	})
	return wait
}

func (l *lane) pick() *job {
	for i, s := range l.ready {
		if s.alone && l.alone >= l.waiters() {
			continue
		}
		if s.alone || s.hooked() {
			l.ready = slices.Delete(l.ready, i, i+1)
			if s.alone {
				l.alone++
			}
			return &job{sidings: []*siding{s}, parts: [][]*op{s.part(1)}, alone: s.alone}
		}
		return l.gather(s.tenant())
	}
	return nil
}

// waiters is how many workers may wait inside of the database.
func (l *lane) waiters() int { return max(l.p.config.Lanes-1, 1) }

// setAlone keeps count of the sidings that are to be tried alone.
func (l *lane) setAlone(s *siding, alone bool) {
	if s.alone != alone {
		s.alone = alone
		if alone {
			l.turns++
		} else {
			l.turns--
		}
	}
}

// gather makes one group of all sidings of a tenant that can go together. One
// tenant's trouble is no other's.
func (l *lane) gather(tenant string) *job {
	j := &job{}
	room := l.p.config.GroupSize
	l.ready = slices.DeleteFunc(l.ready, func(s *siding) bool {
		if room == 0 || s.tenant() != tenant || s.alone || s.hooked() {
			return false
		}
		part := s.part(room)
		room -= len(part)
		j.sidings, j.parts = append(j.sidings, s), append(j.parts, part)
		return true
	})
	return j
}

// turnAfter is how many tries in vain earn a siding a turn alone.
const turnAfter = 8

// done gives the sidings of a job back. again are the commands that were not
// settled; apart says that their group failed because of one of them.
func (l *lane) done(j *job, again []*op, apart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.alone {
		l.alone--
	}
	for i, s := range j.sidings {
		rest := slices.DeleteFunc(j.parts[i], func(o *op) bool { return !slices.Contains(again, o) })
		s.ops = append(rest[:len(rest):len(rest)], s.ops...)
		if len(rest) == 0 {
			s.tries = 0
		} else {
			s.tries++
		}
		turn := s.tries%turnAfter == turnAfter-1 && l.turns < l.waiters()
		l.setAlone(s, len(rest) > 0 && (apart || turn))
		switch {
		case len(s.ops) == 0:
			delete(l.sidings, s.route)
		case s.tries == 0 || s.alone && !j.alone:
			l.ready = append(l.ready, s)
		default:
			s.due = time.Now().Add(backoff(min(s.tries, 6)))
			l.later = append(l.later, s)
		}
	}
	if l.closed && len(l.sidings) == 0 {
		close(l.idle)
	}
	signal(l.work)
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

// loop does one job after the other.
func (l *lane) loop(ctx context.Context, r *runner) {
	defer r.drop()
	defer context.AfterFunc(ctx, func() { signal(l.work) })()
	for {
		j := l.next(ctx)
		if j == nil {
			return
		}
		l.do(ctx, r, j)
	}
}

func (l *lane) do(ctx context.Context, r *runner, j *job) {
	ops := l.p.unbroken(j.ops())
	if len(ops) == 0 {
		l.done(j, nil, false)
		return
	}
	held, reaction, err := r.run(ctx, ops, true, j.alone)
	switch {
	case reaction == fine:
		l.done(j, l.waiting(held, nil), false)
	case reaction == blocked && ctx.Err() == nil:
		l.done(j, l.waiting(ops, err), true)
	case reaction == behind && ctx.Err() == nil:
		l.setHeld(err)
		l.done(j, l.waiting(ops, err), false)
	case (reaction == poison || reaction == again) && len(ops) > 1:
		l.p.stats.splits.Add(1)
		l.done(j, ops, true)
	default:
		l.p.fail(ops, err, reaction)
		l.done(j, nil, false)
	}
}

// waiting refuses the commands that have waited long enough, and returns the
// others.
func (l *lane) waiting(ops []*op, err error) []*op {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(ops), func(o *op) bool {
		if !o.gone() && now.Before(o.deadline) {
			return false
		}
		l.p.fail([]*op{o}, err, blocked)
		return true
	})
}
