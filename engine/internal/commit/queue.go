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
	weight func(*op) int // what an op will weigh in a group, in bytes

	mu       sync.Mutex
	items    opList             // for the committers
	busy     map[uint64]*opList // routes at work, each with what waits for the end of its group; nil: nothing does
	parked   int                // ops in those lists
	charged  charge             // all that waits
	asides   charge             // of that, in the retry lane
	working  int                // committers with a group
	late     int                // of those, how many have had theirs for long
	worked   time.Duration      // for how long there were some, until counted
	counted  time.Time
	duration time.Duration // of a group, about
	pace     pace
	closed   bool

	leastPatience, mostPatience time.Duration
	siblings                    siblings

	refusing atomic.Bool // something was refused because the queue is full, and nothing was taken out since

	filled chan struct{} // one token: there may be work for one more committer
	room   chan struct{} // closed when there is room again
	wanted bool          // somebody waits for that
}

// charge is what counts against the bounds of the queue.
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
	some := false // that no committer at work will take after its group
	for taken < len(ops) && !q.full(canWait) {
		half := 2*q.asides.n >= q.limits.QueueSize || 2*q.asides.bytes >= q.limits.QueueBytes
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

// freed tells those that wait for room, and those that come.
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

// leave removes waiting ops whose callers have left. Nothing was done for them. An op whose state is unknown stays.
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
		q.pace = pace{} // the time until the next group is nobody's wait
	}
	answerLeft(left) // with the lock: nothing that comes after them may be done before
	q.mu.Unlock()
}

// letGo takes an op out of wherever it waits.
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

// answerLeft settles commands that were let go.
func answerLeft(ops []*op) {
	for _, o := range ops {
		o.receipt = transitions.Receipt{}
		o.err = workflow.Errorf(workflow.TimedOut, "the caller left before the command was begun; nothing was done")
		o.answer()
	}
}

// close stops further pushes; what waits can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.filled)
	signal(q.siblings.here)
	q.freed()
}

// depth is how many ops wait for a committer.
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

// pace measures how fast committers empty a queue that has more commands than they can take, from one group to the next. It estimates the
// waiting time of a new command. If the queue becomes empty the rate is unknown, and not needed: no command waits.
type pace struct {
	since time.Time     // when the newest group was taken and left something; zero: it left nothing
	span  time.Duration // what the groups took, the older ones ever less of it
	n     float64       // and how many commands they had
}

// paceGroups is over how many groups the pace is averaged, about.
const paceGroups = 16

// took notes a group of so many commands, and whether it left some.
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

// wait is how long so many commands will take; 0 where nothing is known.
func (p *pace) wait(n int) time.Duration {
	if p.n == 0 {
		return 0
	}
	return time.Duration(float64(p.span) / p.n * float64(n))
}

// full reports whether nothing more is to wait: the queue is at one of its bounds, or what comes now would
// wait for too long. Two groups for each committer always may: with fewer they would be small. A caller who can wait
// for room leaves half of the time, and one of three groups, to those who cannot: else an import would have all of them refused.
func (q *queue) full(canWait bool) bool {
	l := &q.limits
	if q.charged.n-max(q.asides.n-l.QueueSize/2, 0) >= l.QueueSize || q.charged.bytes-max(q.asides.bytes-l.QueueBytes/2, 0) >= l.QueueBytes {
		return true
	}
	n, groups, most := q.items.n+q.parked, 3, l.QueueWait
	if canWait {
		groups, most = 2, most/2
	}
	return n >= groups*l.GroupSize*l.Committers && l.QueueWait > 0 && q.pace.wait(n) >= most
}

// Admit fails with Overloaded if Submit would. A caller checks it first, so that a refused command costs almost nothing.
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
