package relay

// fifo is a queue.
type fifo[T any] struct {
	list []T
	head int
}

func (q *fifo[T]) rest() []T { return q.list[q.head:] }

func (q *fifo[T]) push(v T) {
	if q.head > len(q.list)/2 && q.head > 64 {
		n := copy(q.list, q.rest())
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, v)
}

func (q *fifo[T]) pop() (v T) {
	q.list[q.head], v = v, q.list[q.head]
	q.head++
	return v
}

// tenantQueue holds a tenant's instance queues that are in one state. Entries that have left the
// state are skipped.
type tenantQueue struct {
	tenant string
	fifo[*instanceQueue]
}

// fairQueue holds the instance queues that are in one state, round-robin over the tenants.
type fairQueue struct {
	state   queueState
	tenants map[string]*tenantQueue
	order   fifo[*tenantQueue] // next tenants
	count   int                // of entries, including those that have left the state
}

// push appends a queue unless it is present.
func (f *fairQueue) push(q *instanceQueue) {
	t := f.tenants[q.tenant]
	if t == nil {
		if f.tenants == nil {
			f.tenants = map[string]*tenantQueue{}
		}
		t = &tenantQueue{tenant: q.tenant}
		f.tenants[q.tenant] = t
		f.order.push(t)
	}
	if q.inQueues&(1<<f.state) == 0 {
		q.inQueues |= 1 << f.state
		t.push(q)
		f.count++
	}
}

// pop removes and returns the first queue of the next tenant, or nil.
func (f *fairQueue) pop() *instanceQueue {
	if !f.has() {
		return nil
	}
	t := f.order.pop()
	f.order.push(t)
	return f.remove(t)
}

func (f *fairQueue) remove(t *tenantQueue) *instanceQueue {
	q := t.pop()
	q.inQueues &^= 1 << f.state
	f.count--
	return q
}

// has reports whether a queue is in the state. It drops earlier entries that are not.
func (f *fairQueue) has() bool {
	for len(f.order.rest()) > 0 {
		t := f.order.rest()[0]
		for len(t.rest()) > 0 {
			if t.rest()[0].state == f.state {
				return true
			}
			f.remove(t)
		}
		delete(f.tenants, t.tenant)
		f.order.pop()
	}
	return false
}

// each calls do for every queue in the state.
func (f *fairQueue) each(do func(*instanceQueue)) {
	for _, t := range f.order.rest() {
		for _, q := range t.rest() {
			if q.state == f.state {
				do(q)
			}
		}
	}
}
