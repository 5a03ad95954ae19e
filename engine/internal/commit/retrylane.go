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
	plain   turns // tenants with a job that is not slow
	slow    turns // tenants with a slow job that may run
	jobs    int   // running slow jobs
	alone   int   // routes whose first command is tried alone
	later   alarms
	closed  bool
	ended   bool          // the context has ended; all jobs are due and abandoned
	idle    chan struct{} // closed when the lane is closed and empty
}

// mostSlow returns how many workers may have a slow job. Of one tenant they may have one fewer.
func (l *retryLane) mostSlow() int { return max(l.pipe.config.Limits.RetryWorkers-1, 1) }

// takes reports whether a command belongs here: it runs the user's SQL, others of its route are here, or its tenant's log is locked. The
// caller holds the lock.
func (l *retryLane) takes(o *op) bool {
	if o.p.Hook || l.routes[o.route] != nil {
		return true
	}
	t := l.tenants[o.p.Tenant]
	return t != nil && t.heldLately()
}

// sort separates the commands that belong here, and later ones of the same routes, from the others.
func (l *retryLane) sort(ops []*op) (kept, retry []*op) {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	kept = ops[:0]
	var routes map[uint64]bool // with commands for the lane
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
	answerLeft(left) // with the lock, before later commands of their callers
	l.q.mu.Unlock()
	l.pipe.stats.toRetryLane.Add(int64(len(ops)))
	signal(l.work)
}

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

func (l *retryLane) charge(o *op) {
	l.q.charged.add(o)
	l.q.inLane.add(o)
}

// letGo updates the lane after an op was removed from its route's queue.
func (l *retryLane) letGo(o *op) {
	r := l.routes[o.route]
	l.q.inLane.take(o)
	r.tenant.ages.remove(o)
	switch {
	case r.state == running:
	case r.ops.n == 0:
		l.setAlone(r, false)
		l.drop(r)
	case r.state == ready && r.isSlow() != (r.in == &r.tenant.slow): // the first command has changed
		l.makeReady(r, false)
	}
}

// close lets the workers end when everything is settled. Nothing may be pushed any more.
func (l *retryLane) close() {
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	l.closed = true
	if len(l.routes) == 0 {
		l.end()
	}
}

func (l *retryLane) end() {
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}

// routeQueue is the queue of one route. It exists while the route has waiting or running commands in the lane.
type routeQueue struct {
	route  uint64
	tenant *tenantQueues
	ops    opList
	tries  int  // failed attempts since the last success
	alone  bool // its first command is tried alone, and waits for locks
	state  routeState
	in     *list.List // the list of ready queues that has it
	at     *list.Element
	alarm  alarm // when it is tried again
}

type routeState int

const (
	resting routeState = iota // until its alarm
	ready
	running
)

// isSlow reports whether the next command is a slow job.
func (r *routeQueue) isSlow() bool { return r.alone || r.ops.first.p.Hook }

func (r *routeQueue) unready() {
	if r.in != nil {
		r.in.Remove(r.at)
		r.in, r.at = nil, nil
	}
}

// makeReady puts a queue behind the ready ones, or in front of them after an attempt that failed for another's reason.
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

// drop removes an empty queue.
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

// tenantQueues holds the queues of one tenant's routes, and the state of its log's last position, the head.
type tenantQueues struct {
	tenant      string
	routes      int       // all
	plain, slow list.List // those that are ready
	ages        opList    // all commands, also running ones, by deadline
	jobs        int       // running slow jobs

	held    bool      // the head is locked
	probing bool      // a job tries to lock it
	tries   int       // in vain
	due     time.Time // when it is tried again
	watched time.Time // the end of watchFor
	alarm   alarm
	inPlain *list.Element // its turn
	inSlow  *list.Element
}

// watchFor is how long a tenant's commands use the retry lane after its head was locked. To detect the lock costs a group with commands of
// other tenants a second.
const watchFor = 3 * time.Second

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

// dropTenant removes a tenant without commands and without a recent lock.
func (l *retryLane) dropTenant(t *tenantQueues) {
	if t.routes == 0 && t.jobs == 0 && !t.heldLately() {
		l.later.cancel(&t.alarm)
		delete(l.tenants, t.tenant)
	}
}

// arrange adds the tenant to the round-robin lists or removes it.
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

// markHeadsLocked records the tenants whose heads are locked, and returns them. Their commands use the retry lane.
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

// await sets the tenant's alarm: for the next try of its head, for the next deadline of a command, or for the end of watchFor.
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

// oldest returns the waiting command with the earliest deadline.
func (t *tenantQueues) oldest() *op {
	o := t.ages.first
	for o != nil && o.list() == nil {
		o = o.places[byAge].next
	}
	return o
}

// turns is a round-robin list of tenants.
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
