package commit

import (
	"time"
)

// work is the state of a committer: the group that it runs, if any.
type work struct {
	ops      []*op
	routes   []uint64 // of the ops, also after those are settled
	since    time.Time
	patience time.Duration
	alarm    *time.Timer // goes off when the group is late
	late     bool
}

// begins reports whether to start another committer. A node that writes its logs alone starts all of them: while one commits, the others
// write. If other nodes write the same logs, each group waits for the log's last position, and another committer would only make groups
// smaller.
func (q *queue) begins() bool {
	return !q.siblings.shared() || q.working == q.late || q.items.n >= q.limits.GroupSize || q.items.bytes >= q.limits.GroupBytes
}

// next ends the group that the committer has, waits until there is work for it, and takes the next group: up to GroupSize commands and up
// to about GroupBytes. It reports false when the queue is closed and empty.
func (q *queue) next(w *work) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(w.routes) > 0 {
		answered := len(w.routes)
		q.end(w)
		q.awaitSiblings(answered)
	}
	for {
		if q.begins() && q.gather(w) {
			q.begin(w)
			return true
		}
		if q.closed && q.items.n == 0 {
			signal(q.filled) // for the other committers
			return false
		}
		q.mu.Unlock()
		<-q.filled
		q.mu.Lock()
	}
}

// gather takes a group from the front. Ops of a route that is running are parked.
func (q *queue) gather(w *work) bool {
	bytes, scanned := 0, 0
	for q.items.n > 0 && len(w.ops) < q.limits.GroupSize && (len(w.ops) == 0 || bytes < q.limits.GroupBytes) {
		o := q.items.popFront()
		if list, busy := q.busy[o.route]; busy {
			q.park(list, o)
			if scanned++; scanned > 2*q.limits.GroupSize { // one route may have all waiting ops
				break
			}
			continue
		}
		bytes += q.weight(o)
		q.charged.take(o)
		w.ops, w.routes = append(w.ops, o), append(w.routes, o.route)
	}
	return len(w.ops) > 0
}

// park makes an op wait for the end of the group with its route.
func (q *queue) park(list *opList, o *op) {
	if list == nil {
		list = &opList{}
		q.busy[o.route] = list
	}
	list.pushBack(o)
	q.parked++
}

func (q *queue) begin(w *work) {
	for _, route := range w.routes {
		q.busy[route] = nil
	}
	w.since, w.patience = time.Now(), q.patience()
	q.pace.took(len(w.ops), q.items.n+q.parked > 0, w.since)
	q.atWork(1)
	if w.alarm == nil {
		w.alarm = time.AfterFunc(w.patience, func() { q.beLate(w) })
	} else {
		w.alarm.Reset(w.patience)
	}
	q.freed()
	if q.items.n > 0 && q.begins() || q.closed {
		signal(q.filled)
	}
}

// atWork counts the committers that have a group or wait for one, and the time with at least one.
func (q *queue) atWork(more int) {
	now := time.Now()
	if q.working > 0 {
		q.worked += now.Sub(q.counted)
	}
	q.counted = now
	q.working += more
}

// patience returns how long a group may take before another committer starts.
func (q *queue) patience() time.Duration {
	return min(max(2*q.duration, q.leastPatience), q.mostPatience)
}

// beLate marks the committer's group as late.
func (q *queue) beLate(w *work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.late || len(w.routes) == 0 || time.Since(w.since) < w.patience { // the alarm was for the group before
		return
	}
	w.late = true
	q.late++
	if q.items.n > 0 {
		signal(q.filled)
	}
}

// end releases the routes of the committer's group, and moves the ops that waited for them to the front.
func (q *queue) end(w *work) {
	w.alarm.Stop()
	q.atWork(-1)
	if w.late {
		w.late = false
		q.late--
	}
	q.duration += (time.Since(w.since) - q.duration) / 8
	for _, route := range w.routes {
		list := q.busy[route]
		delete(q.busy, route)
		for list != nil && list.n > 0 {
			o := list.last
			list.remove(o)
			q.items.pushFront(o)
			q.parked--
		}
	}
	clear(w.ops[:cap(w.ops)])
	w.ops, w.routes = w.ops[:0], w.routes[:0]
}

// siblings decides how long a committer waits for the callers that it has just answered. If many callers submit one command after the
// other, they form two halves that wait for each other's commits. A node alone loses nothing by that: while the database commits, callers
// prepare. But if other nodes write the same logs, a small group waits as long for the log's last position as a large one. So a node that
// shares its logs waits for a fraction of the duration of a group, and only as long as that brings commands.
type siblings struct {
	heads    map[string]int64 // of the logs, after this node's newest groups
	others   float64          // the share of those groups before which other nodes have written
	expected int              // the number of commands for which the committer waits; 0 means that none waits
	here     chan struct{}    // one token: enough of them have come
	vain     int              // consecutive waits in vain
	skip     int              // groups before the next wait
}

const (
	fewSiblings = 8   // fewer are not waited for
	mostHeads   = 256 // entries of heads
	mostWait    = 5 * time.Millisecond
)

// shared reports whether other nodes write the same logs.
func (s *siblings) shared() bool { return s.others >= 0.5 }

// wrote records the log positions of a committed group, to find out whether other nodes write between them.
func (q *queue) wrote(parts []*part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.siblings
	for _, p := range parts {
		if p.head == 0 {
			continue
		}
		before, known := s.heads[p.tenant]
		if len(s.heads) >= mostHeads && !known {
			clear(s.heads)
		}
		s.heads[p.tenant] = p.head
		if !known {
			continue
		}
		was := 0.0
		if p.head-int64(len(p.steps)) > before {
			was = 1
		}
		s.others += (was - s.others) / 8
	}
}

// awaitSiblings waits for the callers that the last group answered, without holding the lock. The committer counts as running meanwhile.
func (q *queue) awaitSiblings(answered int) {
	s := &q.siblings
	if answered < fewSiblings || !s.shared() || q.working > 0 || q.closed {
		return
	}
	if s.skip > 0 {
		s.skip--
		return
	}
	before := q.items.n
	s.expected = before + answered
	select {
	case <-s.here: // of an earlier wait
	default:
	}
	timer := time.NewTimer(min(q.duration/4, mostWait))
	q.atWork(1)
	q.mu.Unlock()
	select {
	case <-s.here:
	case <-timer.C:
	}
	q.mu.Lock()
	q.atWork(-1)
	timer.Stop()
	s.expected = 0
	if s.vain++; 2*(q.items.n-before) >= answered {
		s.vain = 0
	}
	s.skip = 1<<min(s.vain, 6) - 1
}
