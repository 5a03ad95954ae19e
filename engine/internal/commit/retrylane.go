package commit

import "time"

// retryLane holds the commands that wait for a lock of another transaction, and those that run the user's SQL. They delay only later
// commands of the same route, which follow them into the lane to keep their order. They count against the limits of the queue, whose lock
// guards the lane too.
//
// Locked instances are retried together, a group at a time, with SKIP LOCKED and a growing delay, so a thousand of them cost no more than
// one. This fails in two cases: SKIP LOCKED does not show an uncommitted key, and an instance with a line of waiting transactions is never
// free at the moment of a retry. So a blocked group is split, and a queue that was locked for many retries gets a turn in which its first
// command is retried alone and waits for as long as lock_timeout allows.
//
// While another transaction holds the last position of a tenant's log, one command of the tenant retries and the others wait.
//
// Jobs that may take long are slow jobs: the user's SQL, commands retried alone, retries for a log position. One worker is always free of
// slow jobs, and one more is reserved for another tenant. Tenants are served round-robin.
type retryLane struct {
	pipe *Pipeline
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

func newRetryLane(pipe *Pipeline, q *queue) *retryLane {
	l := &retryLane{pipe: pipe, q: q, routes: map[uint64]*routeQueue{}, tenants: map[string]*tenantQueues{},
		work: make(chan struct{}, 1), idle: make(chan struct{})}
	q.lane = l
	return l
}

// mostSlow is how many workers may have a slow job, and mostSlowOf how many may have one of the
// same tenant.
func (l *retryLane) mostSlow() int   { return max(l.pipe.config.Limits.RetryWorkers-1, 1) }
func (l *retryLane) mostSlowOf() int { return max(l.pipe.config.Limits.RetryWorkers-2, 1) }

// takes reports whether a command belongs here: it runs the user's SQL, others of its route are
// here, or its tenant's log cannot be written. The caller has the lock.
func (l *retryLane) takes(o *op) bool {
	if o.p.Hook || l.routes[o.route] != nil {
		return true
	}
	t := l.tenants[o.p.Tenant]
	return t != nil && t.heldLately()
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
	deadline := time.Now().Add(l.pipe.config.Limits.LockWait)
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
	l.pipe.stats.toRetryLane.Add(int64(len(ops)))
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
