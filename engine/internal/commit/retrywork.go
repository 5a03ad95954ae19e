package commit

import (
	"context"
	"slices"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
)

// job is the work of a worker: commands of one queue that run alone, or of several queues of one tenant.
type job struct {
	tenant *tenantQueues
	queues []*routeQueue
	parts  [][]*op // of each queue
	alone  bool
	slow   bool
	probe  bool // it tries to lock the tenant's head
}

func (j *job) ops() []*op { return slices.Concat(j.parts...) }

// next waits for a job. It returns nil when the lane is closed and empty. After ctx has ended all jobs are due, and are abandoned.
func (l *retryLane) next(ctx context.Context) *job {
	for {
		l.q.mu.Lock()
		refused, wait := l.wakeDue(ctx)
		l.pipe.fail(refused, nil, blocked)
		j := l.pick()
		if j != nil {
			l.q.freed()
			if l.some() {
				signal(l.work)
			}
		}
		empty := l.closed && len(l.routes) == 0
		l.q.mu.Unlock()
		if j != nil || empty {
			return j
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

// wakeDue makes due queues ready, and returns the time until the next alarm. refused are commands whose deadline has passed while the head
// was locked; they were not tried.
func (l *retryLane) wakeDue(ctx context.Context) (refused []*op, wait time.Duration) {
	now := time.Now()
	if ctx.Err() != nil && !l.ended {
		l.ended = true
		for _, t := range l.tenants {
			l.headFreed(t)
		}
	}
	for a := l.later.next(); a != nil; a = l.later.next() {
		if left := a.at.Sub(now); left > 0 && !l.ended {
			return refused, left
		}
		l.later.cancel(a)
		switch of := a.of.(type) {
		case *routeQueue:
			l.makeReady(of, false)
		case *tenantQueues:
			if !of.held {
				l.dropTenant(of)
				continue
			}
			// Commands in progress are judged after their try.
			for o := of.oldest(); o != nil && !now.Before(o.deadline); o = of.oldest() {
				refused = append(refused, o)
				l.q.letGo(o)
				l.q.freed()
			}
			of.await(l)
			l.arrange(of)
		}
	}
	return refused, time.Minute
}

func (l *retryLane) some() bool {
	return l.plain.first() != nil || l.jobs < l.mostSlow() && l.slow.first() != nil
}

// pick takes the next job in round-robin order. Slow jobs come first: they cannot occupy all workers.
func (l *retryLane) pick() *job {
	if t := l.slow.first(); t != nil && l.jobs < l.mostSlow() {
		l.slow.set(t, &t.inSlow, false)
		from := &t.slow
		if from.Len() == 0 || t.held && t.plain.Len() > 0 { // without the user's SQL a head is tried sooner
			from = &t.plain
		}
		r := from.Front().Value.(*routeQueue)
		j := &job{tenant: t, alone: r.alone, slow: true, probe: t.held}
		l.jobs++
		t.jobs++
		t.probing = t.probing || j.probe
		l.begin(j, r, 1)
		l.arrange(t)
		return j
	}
	if t := l.plain.first(); t != nil {
		l.plain.set(t, &t.inPlain, false)
		return l.gather(t)
	}
	return nil
}

// gather builds one group from all queues of a tenant that can run together. Tenants are kept apart, so that a failure of one does not
// affect another.
func (l *retryLane) gather(t *tenantQueues) *job {
	j := &job{tenant: t}
	limits := l.pipe.config.Limits
	room, bytes := limits.GroupSize, limits.GroupBytes
	for room > 0 && bytes > 0 && t.plain.Len() > 0 {
		r := t.plain.Front().Value.(*routeQueue)
		n := 0
		for o := r.ops.first; o != nil && !o.p.Hook && n < room && (bytes > 0 || n == 0); o = o.places[inOrder].next {
			bytes -= l.q.weight(o)
			n++
		}
		room -= n
		l.begin(j, r, n)
	}
	l.arrange(t)
	return j
}

// begin moves the first n commands of a queue into a job.
func (l *retryLane) begin(j *job, r *routeQueue, n int) {
	r.unready()
	r.state = running
	part := make([]*op, n)
	for i := range part {
		part[i] = r.ops.popFront()
		l.q.charged.take(part[i])
		l.q.inLane.take(part[i])
	}
	j.queues, j.parts = append(j.queues, r), append(j.parts, part)
}

func (l *retryLane) setAlone(r *routeQueue, alone bool) {
	if r.alone != alone {
		r.alone = alone
		if alone {
			l.alone++
		} else {
			l.alone--
		}
	}
}

// loop does one job after the other.
func (l *retryLane) loop(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { signal(l.work) })()
	for j := l.next(ctx); j != nil; j = l.next(ctx) {
		ops := l.pipe.unbroken(j.ops())
		if len(ops) == 0 {
			l.done(j, jobResult{})
			continue
		}
		left, reaction, err := l.pipe.retries.run(ctx, ops, true, j.alone)
		switch {
		case reaction == failureNone && len(left.unread) == len(ops):
			l.done(j, jobResult{tried: ops, apart: true})
		case reaction == failureNone:
			l.done(j, jobResult{tried: l.waiting(left.held, nil), untried: left.unread})
		case reaction == blocked && ctx.Err() == nil:
			l.done(j, jobResult{tried: l.waiting(ops, err), apart: true})
		case reaction == headLocked && ctx.Err() == nil:
			l.markHeadsLocked(err)
			l.done(j, jobResult{untried: l.waiting(ops, err)})
		case (reaction == badCommand || reaction == retryGroup) && len(ops) > 1:
			l.pipe.stats.splits.Add(1)
			l.done(j, jobResult{tried: ops, apart: true})
		default:
			l.pipe.fail(ops, err, reaction)
			l.done(j, jobResult{})
		}
	}
}

// waiting refuses the commands whose deadline has passed, and returns the others.
func (l *retryLane) waiting(ops []*op, err error) []*op {
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(ops), func(o *op) bool {
		if !o.gone() && now.Before(o.deadline) {
			return false
		}
		l.pipe.fail([]*op{o}, err, blocked)
		return true
	})
}

// turnAfter is the number of failed attempts after which the first command of a queue is tried alone.
const turnAfter = 8

// again is the result of an attempt for one command.
type again int

const (
	settled again = iota
	tried         // in vain
	untried       // for a reason of another command
)

// jobResult holds the commands that a job has not settled.
type jobResult struct {
	tried, untried []*op
	apart          bool // the group failed because of one of its commands
}

func (l *retryLane) done(j *job, result jobResult) {
	for _, o := range result.tried {
		o.again = tried
	}
	for _, o := range result.untried {
		o.again = untried
	}
	l.q.mu.Lock()
	t := j.tenant
	if j.slow {
		l.jobs--
		t.jobs--
	}
	if j.probe {
		t.probing = false
		t.await(l)
	}
	for i, r := range j.queues {
		answerLeft(l.giveBack(j, r, j.parts[i], result.apart))
	}
	l.arrange(t)
	l.dropTenant(t)
	l.q.mu.Unlock()
	signal(l.work)
}

// giveBack returns the commands that were not settled to the front of their queue, except those whose callers have left.
func (l *retryLane) giveBack(j *job, r *routeQueue, part []*op, apart bool) (left []*op) {
	vain, rest := 0, 0
	for _, o := range slices.Backward(part) {
		was := o.again
		o.again = settled
		if was != settled && o.leaves() {
			left = append(left, o)
			was = settled
		}
		if was == settled {
			r.tenant.ages.remove(o)
			continue
		}
		if was == tried {
			vain++
		}
		rest++
		r.ops.pushFront(o)
		l.charge(o)
	}
	if r.tries++; vain == 0 {
		r.tries = 0
	}
	r.state = resting
	turn := r.tries%turnAfter == turnAfter-1 && l.alone < l.mostSlow()
	l.setAlone(r, vain > 0 && (apart || turn))
	switch {
	case r.ops.n == 0:
		l.drop(r)
	case r.tries == 0 || r.alone && !j.alone:
		l.makeReady(r, rest > 0)
	default:
		l.later.set(&r.alarm, time.Now().Add(backoff.Delay(lockRetry, r.tries)))
	}
	slices.Reverse(left)
	return left
}
