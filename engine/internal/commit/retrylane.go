package commit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// retryLane has the commands that wait for somebody else's lock, and those that
// run the user's own SQL. Here they hold up nobody but the later commands of the same
// route, which come here behind them to keep their order.
//
// Held instances are tried again together, a group at a time, with SKIP LOCKED and a
// growing pause, so that a thousand of them cost no more than one. That is not enough
// in two cases: an uncommitted key cannot be seen that way, and an instance for which
// others wait in line is never free at the moment of a try. So a group that is blocked
// is taken apart, and a queue that was held for many tries gets a turn: its first
// command is tried alone, and waits in the database for as long as lock_timeout
// allows. One worker is always kept free of such waits.
type retryLane struct {
	p    *Pipeline
	work chan struct{} // one token: there may be something to do

	mu          sync.Mutex
	queues      map[uint64]*routeQueue // all, also those being worked on
	ready       []*routeQueue          // to be worked on, in order
	later       []*routeQueue          // to be tried again at their time
	alone       int                    // queues being tried alone
	turns       int                    // queues that are to be tried alone, those included
	lockedHeads map[string]bool        // tenants whose log's head somebody holds
	closed      bool
	idle        chan struct{} // closed when the lane is closed and empty
}

// routeQueue is the queue of one route. It exists for as long as the route has commands
// here, waiting or running.
type routeQueue struct {
	route uint64
	ops   []*op
	tries int       // in vain, since something was done
	due   time.Time // when it is tried again
	alone bool      // its first command is to be tried alone, waiting
}

// tenant is whose commands these are; a route is of one tenant.
func (q *routeQueue) tenant() string { return q.ops[0].p.Tenant }

// hooked reports whether the next command runs the user's SQL.
func (q *routeQueue) hooked() bool { return q.ops[0].p.Hook }

// part takes commands off the front: one that is to be alone or has a hook, else
// as many without as fit.
func (q *routeQueue) part(limit int) []*op {
	n := 1
	for !q.alone && !q.hooked() && n < min(len(q.ops), limit) && !q.ops[n].p.Hook {
		n++
	}
	ops := q.ops[:n:n]
	q.ops = q.ops[n:]
	return ops
}

func newRetryLane(p *Pipeline) *retryLane {
	return &retryLane{p: p, queues: map[uint64]*routeQueue{}, lockedHeads: map[string]bool{},
		work: make(chan struct{}, 1), idle: make(chan struct{})}
}

// takes reports whether a command belongs here: others of its route are here, or
// its tenant's log cannot be written.
func (l *retryLane) takes(o *op) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queues[o.route] != nil || l.lockedHeads[o.p.Tenant]
}

// markHeadsLocked notes that the logs that the error names cannot be written for now. All
// commands of those tenants come here, and of no other.
func (l *retryLane) markHeadsLocked(err error) (tenants []string) {
	head, ok := errors.AsType[*headError](err)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, tenant := range head.tenants {
		l.lockedHeads[tenant] = true
	}
	return head.tenants
}

// headsFree notes that the logs that the group has moved were written.
func (l *retryLane) headsFree(g *group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lockedHeads) == 0 {
		return
	}
	for _, t := range g.parts {
		if t.head > 0 {
			delete(l.lockedHeads, t.tenant)
		}
	}
}

// push adds commands, behind those of the same route.
func (l *retryLane) push(ops ...*op) {
	if len(ops) == 0 {
		return
	}
	deadline := time.Now().Add(l.p.config.Limits.LockWait)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range ops {
		o.deadline = deadline
		q := l.queues[o.route]
		if q == nil {
			q = &routeQueue{route: o.route}
			l.queues[o.route] = q
			l.ready = append(l.ready, q)
		}
		q.ops = append(q.ops, o)
	}
	l.p.stats.toRetryLane.Add(int64(len(ops)))
	signal(l.work)
}

// job is what a worker does at once: commands of one queue that have to run
// alone, or of several.
type job struct {
	queues []*routeQueue
	parts  [][]*op // of each queue
	alone  bool
}

func (j *job) ops() []*op { return slices.Concat(j.parts...) }

// next waits for something to do. It returns nil when the lane is closed and
// empty. When ctx has ended everything is due, to be given up.
func (l *retryLane) next(ctx context.Context) *job {
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
		ended := l.closed && len(l.queues) == 0
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
func (l *retryLane) wakeDue(ctx context.Context) time.Duration {
	wait := time.Minute
	now := time.Now()
	l.later = slices.DeleteFunc(l.later, func(q *routeQueue) bool {
		left := q.due.Sub(now)
		if left <= 0 || ctx.Err() != nil {
			l.ready = append(l.ready, q)
			return true
		}
		wait = min(wait, left)
		return false
	})
	return wait
}

func (l *retryLane) pick() *job {
	for i, q := range l.ready {
		if q.alone && l.alone >= l.waiters() {
			continue
		}
		if q.alone || q.hooked() {
			l.ready = slices.Delete(l.ready, i, i+1)
			if q.alone {
				l.alone++
			}
			return &job{queues: []*routeQueue{q}, parts: [][]*op{q.part(1)}, alone: q.alone}
		}
		return l.gather(q.tenant())
	}
	return nil
}

// waiters is how many workers may wait inside of the database.
func (l *retryLane) waiters() int { return max(l.p.config.Limits.RetryWorkers-1, 1) }

// setAlone keeps count of the queues that are to be tried alone.
func (l *retryLane) setAlone(q *routeQueue, alone bool) {
	if q.alone != alone {
		q.alone = alone
		if alone {
			l.turns++
		} else {
			l.turns--
		}
	}
}

// gather makes one group of all queues of a tenant that can go together. One
// tenant's trouble is no other's.
func (l *retryLane) gather(tenant string) *job {
	j := &job{}
	room := l.p.config.Limits.GroupSize
	l.ready = slices.DeleteFunc(l.ready, func(q *routeQueue) bool {
		if room == 0 || q.tenant() != tenant || q.alone || q.hooked() {
			return false
		}
		part := q.part(room)
		room -= len(part)
		j.queues, j.parts = append(j.queues, q), append(j.parts, part)
		return true
	})
	return j
}

// turnAfter is how many tries in vain earn a queue a turn alone.
const turnAfter = 8

// done gives the queues of a job back. again are the commands that were not
// settled; apart says that their group failed because of one of them.
func (l *retryLane) done(j *job, again []*op, apart bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.alone {
		l.alone--
	}
	for i, q := range j.queues {
		rest := slices.DeleteFunc(j.parts[i], func(o *op) bool { return !slices.Contains(again, o) })
		q.ops = append(rest[:len(rest):len(rest)], q.ops...)
		if len(rest) == 0 {
			q.tries = 0
		} else {
			q.tries++
		}
		turn := q.tries%turnAfter == turnAfter-1 && l.turns < l.waiters()
		l.setAlone(q, len(rest) > 0 && (apart || turn))
		switch {
		case len(q.ops) == 0:
			delete(l.queues, q.route)
		case q.tries == 0 || q.alone && !j.alone:
			l.ready = append(l.ready, q)
		default:
			q.due = time.Now().Add(backoff(min(q.tries, 6)))
			l.later = append(l.later, q)
		}
	}
	if l.closed && len(l.queues) == 0 {
		close(l.idle)
	}
	signal(l.work)
}

// close lets the workers end once everything here is settled. Nothing may be
// pushed any more.
func (l *retryLane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	if len(l.queues) == 0 {
		close(l.idle)
	}
}

// loop does one job after the other.
func (l *retryLane) loop(ctx context.Context, r *runner) {
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

func (l *retryLane) do(ctx context.Context, r *runner, j *job) {
	ops := l.p.unbroken(j.ops())
	if len(ops) == 0 {
		l.done(j, nil, false)
		return
	}
	held, reaction, err := r.run(ctx, ops, true, j.alone)
	switch {
	case reaction == failureNone:
		l.done(j, l.waiting(held, nil), false)
	case reaction == blocked && ctx.Err() == nil:
		l.done(j, l.waiting(ops, err), true)
	case reaction == headLocked && ctx.Err() == nil:
		l.markHeadsLocked(err)
		l.done(j, l.waiting(ops, err), false)
	case (reaction == badCommand || reaction == retryGroup) && len(ops) > 1:
		l.p.stats.splits.Add(1)
		l.done(j, ops, true)
	default:
		l.p.fail(ops, err, reaction)
		l.done(j, nil, false)
	}
}

// waiting refuses the commands that have waited long enough, and returns the
// others.
func (l *retryLane) waiting(ops []*op, err error) []*op {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(ops), func(o *op) bool {
		if !o.gone() && now.Before(o.deadline) {
			return false
		}
		l.p.fail([]*op{o}, err, blocked)
		return true
	})
}
