package commit

import (
	"context"
	"slices"
	"time"
)

// retryLane has the commands that wait for somebody else's lock, and those that
// run the user's own SQL. Here they hold up nobody but the later commands of the same
// route, which come here behind them to keep their order. They count against the bounds of
// the queue, whose lock guards everything here, too.
//
// Held instances are tried again together, a group at a time, with SKIP LOCKED and a
// growing pause, so that a thousand of them cost no more than one. That is not enough
// in two cases: an uncommitted key cannot be seen that way, and an instance for which
// others wait in line is never free at the moment of a try. So a group that is blocked
// is taken apart, and a queue that was held for many tries gets a turn: its first
// command is tried alone, and waits in the database for as long as lock_timeout
// allows.
//
// While the head of a tenant's log is held, one command of the tenant tries it, and
// all others wait without a try.
//
// What may take long is a slow job: the user's SQL, what is tried alone, what tries a
// head. One worker is always kept free of those, and one more for another tenant's. Tenants
// take turns.
type retryLane struct {
	p    *Pipeline
	q    *queue
	work chan struct{} // one token: there may be something to do

	routes  map[uint64]*routeQueue // all, also those being worked on
	tenants map[string]*tenantQueues
	plain   turns // of the tenants that have something to do that is not slow
	slow    turns // of those that have a slow job to do, and may
	jobs    int   // slow ones under way
	alone   int   // routes that are to be, or are being, tried alone
	later   alarms
	closed  bool
	ended   bool          // nothing waits any more, but is to be given up
	idle    chan struct{} // closed when the lane is closed and empty
}

func newRetryLane(p *Pipeline, q *queue) *retryLane {
	l := &retryLane{p: p, q: q, routes: map[uint64]*routeQueue{}, tenants: map[string]*tenantQueues{},
		work: make(chan struct{}, 1), idle: make(chan struct{})}
	q.lane = l
	return l
}

// mostSlow is how many workers may have a slow job, and mostSlowOf how many may have one of the
// same tenant.
func (l *retryLane) mostSlow() int   { return max(l.p.config.Limits.RetryWorkers-1, 1) }
func (l *retryLane) mostSlowOf() int { return max(l.p.config.Limits.RetryWorkers-2, 1) }

// takes reports whether a command belongs here: it runs the user's SQL, others of its route are
// here, or its tenant's log cannot be written. The caller has the lock.
func (l *retryLane) takes(o *op) bool {
	if o.p.Hook || l.routes[o.route] != nil {
		return true
	}
	t := l.tenants[o.p.Tenant]
	return t != nil && t.suspect()
}

// sort tells the commands that belong here, and what is of the same routes after
// them, from the others.
func (l *retryLane) sort(ops []*op) (kept, retry []*op) {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	kept = ops[:0]
	var routes map[uint64]bool // that have commands in retry
	for _, o := range ops {
		if !routes[o.route] && !l.takes(o) {
			kept = append(kept, o)
			continue
		}
		if routes == nil {
			routes = map[uint64]bool{}
		}
		routes[o.route] = true
		retry = append(retry, o)
	}
	return kept, retry
}

// push adds commands, behind those of the same route.
func (l *retryLane) push(ops ...*op) {
	if len(ops) == 0 {
		return
	}
	l.q.mu.Lock()
	deadline := time.Now().Add(l.p.config.Limits.LockWait)
	var left []*op
	for _, o := range ops {
		if o.leaves() {
			left = append(left, o)
			continue
		}
		o.deadline = deadline
		l.add(o)
	}
	answerLeft(left) // with the lock: nothing of their callers' may be done before
	l.q.mu.Unlock()
	l.p.stats.toRetryLane.Add(int64(len(ops)))
	signal(l.work)
}

// add puts an op behind those of the same route.
func (l *retryLane) add(o *op) {
	r, known := l.routes[o.route]
	if !known {
		r = &routeQueue{route: o.route, tenant: l.tenant(o.p.Tenant)}
		r.alarm.of = r
		r.tenant.routes++
		l.routes[o.route] = r
	}
	r.ops.pushBack(o)
	r.tenant.ages.pushBack(o)
	l.charge(o)
	if !known {
		l.makeReady(r, false)
	}
}

// charge counts an op that waits here.
func (l *retryLane) charge(o *op) {
	l.q.charged.add(o)
	l.q.asides.add(o)
}

// letGo forgets an op that was taken out of its route's queue, where it has waited.
func (l *retryLane) letGo(o *op) {
	r := l.routes[o.route]
	l.q.asides.take(o)
	r.tenant.ages.remove(o)
	switch {
	case r.state == running:
	case r.ops.n == 0:
		l.setAlone(r, false)
		l.drop(r)
	case r.state == ready && r.isSlow() != (r.in == &r.tenant.slow): // by what is first now
		l.makeReady(r, false)
	}
}

// job is what a worker does at once: commands of one queue that have to run
// alone, or of several, all of one tenant.
type job struct {
	tenant *tenantQueues
	queues []*routeQueue
	parts  [][]*op // of each queue
	alone  bool
	slow   bool
	probe  bool // it tries the tenant's head
}

func (j *job) ops() []*op { return slices.Concat(j.parts...) }

// next waits for something to do. It returns nil when the lane is closed and
// empty. When ctx has ended everything is due, to be given up.
func (l *retryLane) next(ctx context.Context) *job {
	for {
		l.q.mu.Lock()
		refused, wait := l.wakeDue(ctx)
		l.p.fail(refused, nil, blocked)
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

// wakeDue makes ready what is due, and says how long nothing else will be. refused are commands
// that have waited long enough, for a head that is held: they were not tried.
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
			refused = append(refused, l.rouse(of, now)...)
		}
	}
	return refused, time.Minute
}

// some reports whether there is something that another worker may do.
func (l *retryLane) some() bool {
	return l.plain.first() != nil || l.jobs < l.mostSlow() && l.slow.first() != nil
}

// pick takes what is to be done next, of the tenant whose turn it is. Slow jobs come first: they
// cannot take all workers.
func (l *retryLane) pick() *job {
	if t := l.slow.first(); t != nil && l.jobs < l.mostSlow() {
		l.slow.set(t, &t.inSlow, false)
		return l.pickSlow(t)
	}
	if t := l.plain.first(); t != nil {
		l.plain.set(t, &t.inPlain, false)
		return l.gather(t)
	}
	return nil
}

// pickSlow takes the first command of a queue.
func (l *retryLane) pickSlow(t *tenantQueues) *job {
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

// gather makes one group of all queues of a tenant that can go together. One
// tenant's trouble is no other's.
func (l *retryLane) gather(t *tenantQueues) *job {
	j := &job{tenant: t}
	limits := l.p.config.Limits
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

// begin takes the first n commands of a queue into a job.
func (l *retryLane) begin(j *job, r *routeQueue, n int) {
	r.unready()
	r.state = running
	part := make([]*op, n)
	for i := range part {
		part[i] = r.ops.popFront()
		l.q.charged.take(part[i])
		l.q.asides.take(part[i])
	}
	j.queues, j.parts = append(j.queues, r), append(j.parts, part)
}

// setAlone keeps count of the queues that are to be tried alone.
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

// turnAfter is how many tries in vain earn a queue a turn alone.
const turnAfter = 8

// again says what became of a command that a job had.
type again int

const (
	settled again = iota
	tried         // in vain
	untried       // through no fault of its own
)

// aftermath is what a job leaves.
type aftermath struct {
	tried, untried []*op
	apart          bool // the group failed because of one of its commands
}

// done gives the queues of a job back.
func (l *retryLane) done(j *job, after aftermath) {
	for _, o := range after.tried {
		o.again = tried
	}
	for _, o := range after.untried {
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
		answerLeft(l.giveBack(j, r, j.parts[i], after.apart))
	}
	l.arrange(t)
	l.dropTenant(t)
	l.q.mu.Unlock()
	signal(l.work)
}

// giveBack puts the commands of a part that were not settled back to the front of their
// queue. Those whose callers have left meanwhile it returns.
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
		l.later.set(&r.alarm, time.Now().Add(backoff(min(r.tries, 6))))
	}
	slices.Reverse(left)
	return left
}

// close lets the workers end once everything here is settled. Nothing may be
// pushed any more.
func (l *retryLane) close() {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	l.closed = true
	if len(l.routes) == 0 {
		l.end()
	}
}

// end tells the workers that nothing will come any more.
func (l *retryLane) end() {
	select {
	case <-l.idle:
	default:
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
		l.done(j, aftermath{})
		return
	}
	left, reaction, err := r.run(ctx, ops, true, j.alone)
	switch {
	case reaction == failureNone && len(left.unread) == len(ops):
		l.done(j, aftermath{tried: ops, apart: true})
	case reaction == failureNone:
		l.done(j, aftermath{tried: l.waiting(left.held, nil), untried: left.unread})
	case reaction == blocked && ctx.Err() == nil:
		l.done(j, aftermath{tried: l.waiting(ops, err), apart: true})
	case reaction == headLocked && ctx.Err() == nil:
		l.markHeadsLocked(err)
		l.done(j, aftermath{untried: l.waiting(ops, err)})
	case (reaction == badCommand || reaction == retryGroup) && len(ops) > 1:
		l.p.stats.splits.Add(1)
		l.done(j, aftermath{tried: ops, apart: true})
	default:
		l.p.fail(ops, err, reaction)
		l.done(j, aftermath{})
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
