package commit

import "time"

// work is a committer's place at the queue: the group that it has, if it has one.
type work struct {
	ops      []*op
	routes   []uint64 // of the ops, also when those are settled
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

// next ends the group that the committer has, waits until there is work for it, and takes
// the next group: up to GroupSize commands and up to about GroupBytes. It reports false when
// the queue is closed and empty.
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

// gather takes a group off the front. What is of a route at work is parked.
func (q *queue) gather(w *work) bool {
	bytes, scanned := 0, 0
	for q.items.n > 0 && len(w.ops) < q.limits.GroupSize && (len(w.ops) == 0 || bytes < q.limits.GroupBytes) {
		o := q.items.popFront()
		if list, busy := q.busy[o.route]; busy {
			q.park(list, o)
			if scanned++; scanned > 2*q.limits.GroupSize { // one route may have all that waits
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

// park lets an op wait for the end of the group that has its route.
func (q *queue) park(list *opList, o *op) {
	if list == nil {
		list = &opList{}
		q.busy[o.route] = list
	}
	list.pushBack(o)
	q.parked++
}

// begin notes that the committer is at work.
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

// atWork counts the committers that have a group, or wait for one, and the time in which there
// are some.
func (q *queue) atWork(more int) {
	now := time.Now()
	if q.working > 0 {
		q.worked += now.Sub(q.counted)
	}
	q.counted = now
	q.working += more
}

// patience is how long a group may take before another committer starts.
func (q *queue) patience() time.Duration {
	return min(max(2*q.duration, q.leastPatience), q.mostPatience)
}

// beLate notes that the committer's group takes long.
func (q *queue) beLate(w *work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.late || len(w.routes) == 0 || time.Since(w.since) < w.patience { // that was the group before
		return
	}
	w.late = true
	q.late++
	if q.items.n > 0 {
		signal(q.filled)
	}
}

// end releases the routes of the committer's group, and moves the commands that waited for them to the front.
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
