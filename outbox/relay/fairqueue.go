package relay

// tenantQueue is a queue of a tenant's instance queues that are in one state. It may
// hold some that have left the state; these are skipped.
type tenantQueue struct {
	tenant string
	state  queueState
	list   []*instanceQueue
	head   int
}

func (t *tenantQueue) len() int { return len(t.list) - t.head }

// push appends a queue, unless it is there already.
func (t *tenantQueue) push(q *instanceQueue) bool {
	if q.inQueues&(1<<t.state) != 0 {
		return false
	}
	q.inQueues |= 1 << t.state
	if t.head > len(t.list)/2 && t.head > 64 {
		n := copy(t.list, t.list[t.head:])
		clear(t.list[n:])
		t.list, t.head = t.list[:n], 0
	}
	t.list = append(t.list, q)
	return true
}

// pop takes the first queue.
func (t *tenantQueue) pop() *instanceQueue {
	q := t.list[t.head]
	q.inQueues &^= 1 << t.state
	t.list[t.head] = nil
	t.head++
	return q
}

// has reports whether a queue is in the state, and drops those before it that are not.
func (t *tenantQueue) has() bool {
	for t.head < len(t.list) && t.list[t.head].state != t.state {
		t.pop()
	}
	return t.head < len(t.list)
}

// fairQueue is a queue of the instance queues that are in one state, in which the
// tenants take turns: however many one has, the first of each other comes before its
// second.
type fairQueue struct {
	state   queueState
	tenants map[string]*tenantQueue
	order   []*tenantQueue // whose turn is next
	head    int
	count   int // of queues, with those that have left the state
}

func (f *fairQueue) push(q *instanceQueue) {
	t := f.tenants[q.tenant]
	if t == nil {
		if f.tenants == nil {
			f.tenants = map[string]*tenantQueue{}
		}
		t = &tenantQueue{tenant: q.tenant, state: f.state}
		f.tenants[q.tenant] = t
		f.enqueue(t)
	}
	if t.push(q) {
		f.count++
	}
}

// enqueue lets a tenant wait for its turn.
func (f *fairQueue) enqueue(t *tenantQueue) {
	if f.head > len(f.order)/2 && f.head > 64 {
		n := copy(f.order, f.order[f.head:])
		clear(f.order[n:])
		f.order, f.head = f.order[:n], 0
	}
	f.order = append(f.order, t)
}

// pop takes the first queue in the state of the tenant whose turn it is; nil: there is
// none.
func (f *fairQueue) pop() *instanceQueue {
	if !f.has() {
		return nil
	}
	t := f.order[f.head]
	f.order[f.head] = nil
	f.head++
	q := t.pop()
	f.count--
	f.enqueue(t)
	return q
}

// has reports whether a queue is in the state, and drops those before it that are not.
func (f *fairQueue) has() bool {
	for f.head < len(f.order) {
		t := f.order[f.head]
		before := t.len()
		has := t.has()
		f.count -= before - t.len()
		if has {
			return true
		}
		delete(f.tenants, t.tenant)
		f.order[f.head] = nil
		f.head++
	}
	return false
}

// each does something with every queue that is in the state.
func (f *fairQueue) each(do func(*instanceQueue)) {
	for _, t := range f.order[f.head:] {
		for _, q := range t.list[t.head:] {
			if q.state == f.state {
				do(q)
			}
		}
	}
}
