package commit

import (
	"container/list"
	"errors"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
)

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

// mostSlow returns how many workers may have a slow job. Of one tenant they may have one fewer.
func (l *retryLane) mostSlow() int { return max(l.pipe.config.Limits.RetryWorkers-1, 1) }

// takes reports whether a command belongs here: it runs the user's SQL, others of its route are
// here, or its tenant's log cannot be written. The caller has the lock.
func (l *retryLane) takes(o *op) bool {
	if o.p.Hook || l.routes[o.route] != nil {
		return true
	}
	t := l.tenants[o.p.Tenant]
	return t != nil && t.heldLately()
}

// sort tells the commands that belong here, and what is of the same routes after them, from the others.
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

// close lets the workers end once everything here is settled. Nothing may be pushed any more.
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

// routeQueue is the queue of one route in the retry lane. It exists for as long as the route has commands there, waiting or running.
type routeQueue struct {
	route  uint64
	tenant *tenantQueues
	ops    opList
	tries  int  // in vain, since something was done
	alone  bool // its first command is to be tried alone, waiting
	state  routeState
	in     *list.List // where it is ready
	at     *list.Element
	alarm  alarm // when it is tried again
}

type routeState int

const (
	resting routeState = iota // until its alarm goes off, or it is given something
	ready
	running
)

// isSlow reports whether the next command is a slow job.
func (r *routeQueue) isSlow() bool { return r.alone || r.ops.first.p.Hook }

// unready takes the queue off those that are ready.
func (r *routeQueue) unready() {
	if r.in != nil {
		r.in.Remove(r.at)
		r.in, r.at = nil, nil
	}
}

// makeReady lets a queue be worked on: behind those that are ready, or before them where
// it has been worked on just now, through no fault of its own in vain.
func (l *retryLane) makeReady(r *routeQueue, first bool) {
	l.later.cancel(&r.alarm)
	r.unready()
	r.state, r.in = ready, &r.tenant.plain
	if r.isSlow() {
		r.in = &r.tenant.slow
	}
	if first {
		r.at = r.in.PushFront(r)
	} else {
		r.at = r.in.PushBack(r)
	}
	l.arrange(r.tenant)
}

// drop forgets a queue that is empty.
func (l *retryLane) drop(r *routeQueue) {
	r.unready()
	l.later.cancel(&r.alarm)
	delete(l.routes, r.route)
	r.tenant.routes--
	l.arrange(r.tenant)
	l.dropTenant(r.tenant)
	if l.closed && len(l.routes) == 0 {
		l.end()
	}
}

// tenantQueues are the queues of one tenant's routes in the retry lane, and what is known of the head of its log.
type tenantQueues struct {
	tenant      string
	routes      int       // all
	plain, slow list.List // those that are ready
	ages        opList    // all commands, in the order of their deadlines, those under way too
	jobs        int       // slow ones under way

	held    bool      // somebody has the head
	probing bool      // a job tries it
	tries   int       // in vain
	due     time.Time // when it is tried again
	watched time.Time // until then its commands come here, because the head was held not long ago
	alarm   alarm
	inPlain *list.Element // its turn
	inSlow  *list.Element
}

// watchFor is how long a tenant's commands go through the retry lane after the head of its log
// was held. To find it held costs a group with other tenants' commands a second.
const watchFor = 3 * time.Second

// heldLately reports whether the tenant's head is held, or was until now.
func (t *tenantQueues) heldLately() bool { return t.held || time.Now().Before(t.watched) }

func (l *retryLane) tenant(name string) *tenantQueues {
	t := l.tenants[name]
	if t == nil {
		t = &tenantQueues{tenant: name, ages: opList{kind: byAge}}
		t.alarm.of = t
		l.tenants[name] = t
	}
	return t
}

// dropTenant forgets a tenant of which there is nothing to know.
func (l *retryLane) dropTenant(t *tenantQueues) {
	if t.routes == 0 && t.jobs == 0 && !t.heldLately() {
		l.later.cancel(&t.alarm)
		delete(l.tenants, t.tenant)
	}
}

// arrange gives the tenant a turn where it has something to do.
func (l *retryLane) arrange(t *tenantQueues) {
	plain, slow := t.plain.Len() > 0, t.slow.Len() > 0 && t.jobs < max(l.pipe.config.Limits.RetryWorkers-2, 1)
	if t.held {
		plain, slow = false, (plain || t.slow.Len() > 0) && !t.probing && !time.Now().Before(t.due)
	}
	l.plain.set(t, &t.inPlain, plain)
	l.slow.set(t, &t.inSlow, slow)
	if plain || slow {
		signal(l.work)
	}
}

// markHeadsLocked notes that the logs that the error names cannot be written for now. All
// commands of those tenants come here, and of no other.
func (l *retryLane) markHeadsLocked(err error) (tenants []string) {
	head, ok := errors.AsType[*headError](err)
	if !ok {
		return nil
	}
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	for _, name := range head.tenants {
		t := l.tenant(name)
		t.held = true
		t.tries++
		t.due = time.Now().Add(backoff.Delay(lockRetry, t.tries))
		t.await(l)
		l.arrange(t)
	}
	return head.tenants
}

// headsFree notes that the tenants' logs were written.
func (l *retryLane) headsFree(parts []*part) {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	if len(l.tenants) == 0 {
		return
	}
	for _, p := range parts {
		if t := l.tenants[p.tenant]; t != nil && t.held && p.head > 0 {
			l.headFreed(t)
		}
	}
}

func (l *retryLane) headFreed(t *tenantQueues) {
	t.held, t.tries = false, 0
	t.watched = time.Now().Add(watchFor)
	t.await(l)
	l.arrange(t)
}

// await sets the alarm of a tenant: for the next try of its head, for the first command that will
// have waited long enough for it, or for when there is nothing to know of it.
func (t *tenantQueues) await(l *retryLane) {
	at := t.watched
	if now := time.Now(); t.held {
		at = now.Add(time.Minute)
		if !t.probing && t.due.After(now) {
			at = t.due
		}
		if o := t.oldest(); o != nil && at.After(o.deadline) {
			at = o.deadline
		}
	}
	l.later.set(&t.alarm, at)
}

// oldest is the command that has waited longest, and is not under way.
func (t *tenantQueues) oldest() *op {
	o := t.ages.first
	for o != nil && o.list() == nil {
		o = o.places[byAge].next
	}
	return o
}

// turns are the tenants that have something to do, in the order of their turns.
type turns struct{ list list.List }

func (s *turns) first() *tenantQueues {
	if e := s.list.Front(); e != nil {
		return e.Value.(*tenantQueues)
	}
	return nil
}

// set appends a tenant to the round-robin list or removes it. A tenant keeps its position.
func (s *turns) set(t *tenantQueues, at **list.Element, wanted bool) {
	switch {
	case wanted && *at == nil:
		*at = s.list.PushBack(t)
	case !wanted && *at != nil:
		s.list.Remove(*at)
		*at = nil
	}
}
