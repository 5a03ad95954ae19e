package commit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// queue holds the waiting commands of a pipeline: those for a committer, in the order of their arrival, and those in the retry lane, which
// shares its lock and its limits.
//
// If other nodes write the same logs, as few committers run as the load needs, so that groups are large. Another one starts when more
// commands wait than a group takes, or when the running ones are late. A command waits while a committer runs a group with the same route,
// so commands of a route keep their order.
type queue struct {
	limits Limits
	lane   *retryLane    // nil: there is none
	weight func(*op) int // the estimated memory of an op in a group, in bytes

	mu       sync.Mutex
	items    opList             // for the committers
	busy     map[uint64]*opList // running routes, each with the ops that wait for its group; nil: none
	parked   int                // ops in those lists
	charged  charge             // all that waits
	inLane   charge             // of those, in the retry lane
	working  int                // committers with a group
	late     int                // of those, with a group that is late
	worked   time.Duration      // the time with at least one, up to counted
	counted  time.Time
	duration time.Duration // of a group, about
	pace     pace
	closed   bool

	leastPatience, mostPatience time.Duration
	siblings                    siblings

	refusing atomic.Bool // a push failed because the queue was full, and nothing was removed since

	filled chan struct{} // one token: there may be work for one more committer
	room   chan struct{} // closed when there is room again
	wanted bool          // a caller waits for it
}

// charge is the number and the size of ops, for the limits of the queue.
type charge struct{ n, bytes int }

func (c *charge) add(o *op)  { c.n, c.bytes = c.n+1, c.bytes+o.size() }
func (c *charge) take(o *op) { c.n, c.bytes = c.n-1, c.bytes-o.size() }

func newQueue(l Limits) *queue {
	return &queue{limits: l, weight: (*op).size, leastPatience: 2 * time.Millisecond, mostPatience: 50 * time.Millisecond,
		busy: map[uint64]*opList{}, filled: make(chan struct{}, 1), room: make(chan struct{}),
		siblings: siblings{heads: map[string]int64{}, here: make(chan struct{}, 1)}}
}

// push adds as many ops as there is room for, in order, and returns how many. A closed queue takes none.
func (q *queue) push(ops []*op) (taken int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pushNow(ops, false)
}

// pushNow is push with the lock held. The retry lane fills at most half of the queue, so that a tenant whose commands all wait there does
// not affect others. Only commands that were queued before this was known may exceed it, so the total is at most one and a half times the
// limits.
func (q *queue) pushNow(ops []*op, canWait bool) (taken int, closed bool) {
	if q.closed {
		return 0, true
	}
	some := false // of a route that is not running
	for taken < len(ops) && !q.full(canWait) {
		half := 2*q.inLane.n >= q.limits.QueueSize || 2*q.inLane.bytes >= q.limits.QueueBytes
		if half && q.lane != nil && q.lane.takes(ops[taken]) {
			break
		}
		_, busy := q.busy[ops[taken].route]
		some = some || !busy
		q.items.pushBack(ops[taken])
		q.charged.add(ops[taken])
		taken++
	}
	if taken < len(ops) && !canWait && q.full(false) {
		q.refusing.Store(true)
	}
	if some && q.begins() {
		signal(q.filled)
	}
	if s := &q.siblings; s.expected > 0 && q.items.n >= min(s.expected, q.limits.GroupSize) {
		signal(s.here)
	}
	return taken, false
}

// freed wakes the callers that wait for space.
func (q *queue) freed() {
	q.refusing.Store(false)
	if q.wanted {
		q.wanted = false
		close(q.room)
		q.room = make(chan struct{})
	}
}

// pushAll adds all ops, waiting for room. It returns how many it could add before the context ended or the queue was closed.
func (q *queue) pushAll(ctx context.Context, ops []*op) (taken int, closed bool) {
	for {
		q.mu.Lock()
		n, closed := q.pushNow(ops[taken:], true)
		taken += n
		room := q.room
		q.wanted = q.wanted || taken < len(ops)
		q.mu.Unlock()
		if closed || taken == len(ops) {
			return taken, closed
		}
		select {
		case <-room:
		case <-ctx.Done():
			return taken, false
		}
	}
}

// leave removes waiting ops whose callers have left, unless an earlier run may have committed them.
func (q *queue) leave(ops []*op) {
	q.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(ops), func(o *op) bool { return o.list() == nil || !o.leaves() })
	for _, o := range left {
		q.letGo(o)
	}
	if len(left) > 0 {
		q.freed()
	}
	if q.items.n+q.parked == 0 {
		q.pace = pace{} // no command waits until the next group
	}
	answerLeft(left) // with the lock, before later commands of their callers
	q.mu.Unlock()
}

// letGo removes an op from the list in which it waits.
func (q *queue) letGo(o *op) {
	list := o.list()
	list.remove(o)
	q.charged.take(o)
	switch {
	case o.places[byAge].in != nil: // it is in the retry lane
		q.lane.letGo(o)
	case list != &q.items:
		q.parked--
	}
}

func answerLeft(ops []*op) {
	for _, o := range ops {
		o.receipt = transitions.Receipt{}
		o.err = workflow.Errorf(workflow.TimedOut, "the caller left before the command was begun; nothing was done")
		o.answer()
	}
}

// close stops further pushes. Waiting ops can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.filled)
	signal(q.siblings.here)
	q.freed()
}

// depth returns the number of ops that wait for a committer.
func (q *queue) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.items.n + q.parked
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pace measures the rate at which committers take commands while some are left, to estimate the waiting time of a new command.
type pace struct {
	since time.Time     // when the newest group was taken; zero if it left nothing
	span  time.Duration // the duration of the groups, weighted by age
	n     float64       // their number of commands, weighted likewise
}

// paceGroups is the number of groups over which the pace is averaged.
const paceGroups = 16

// took records a group of n commands, and whether others were left.
func (p *pace) took(n int, left bool, now time.Time) {
	if !left {
		*p = pace{}
		return
	}
	if !p.since.IsZero() {
		p.span += now.Sub(p.since) - p.span/paceGroups
		p.n += float64(n) - p.n/paceGroups
	}
	p.since = now
}

// wait estimates the time for n commands. It returns 0 if the rate is unknown.
func (p *pace) wait(n int) time.Duration {
	if p.n == 0 {
		return 0
	}
	return time.Duration(float64(p.span) / p.n * float64(n))
}

// full reports whether no more commands are accepted: the queue is at a limit, or a new command would wait for too long. Two groups for
// each committer are always accepted, so that groups are not small. A caller who can wait for space leaves half of the time, and one of
// three groups, to the others; otherwise an import would make all of them fail.
func (q *queue) full(canWait bool) bool {
	l := &q.limits
	if q.charged.n-max(q.inLane.n-l.QueueSize/2, 0) >= l.QueueSize || q.charged.bytes-max(q.inLane.bytes-l.QueueBytes/2, 0) >= l.QueueBytes {
		return true
	}
	n, groups, most := q.items.n+q.parked, 3, l.QueueWait
	if canWait {
		groups, most = 2, most/2
	}
	return n >= groups*l.GroupSize*l.Committers && l.QueueWait > 0 && q.pace.wait(n) >= most
}

// Admit fails with Overloaded if Submit would, at almost no cost.
func (pipe *Pipeline) Admit() error {
	if pipe.queue.refusing.Load() {
		return pipe.overloaded()
	}
	return nil
}

func (pipe *Pipeline) overloaded() error {
	pipe.stats.refused.Add(1)
	return workflow.Errorf(workflow.Overloaded, "too many commands wait; try again with the same key")
}
