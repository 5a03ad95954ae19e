package relay

// lanes is a queue of a tenant's lanes. What it holds may be out of date: a lane is where
// its own field says.
type lanes struct {
	tenant string // whose they are
	at     place  // where those are that count
	list   []*lane
	head   int
}

func (q *lanes) len() int { return len(q.list) - q.head }

// push appends a lane, unless it is there already.
func (q *lanes) push(l *lane) bool {
	if l.queued&(1<<q.at) != 0 {
		return false
	}
	l.queued |= 1 << q.at
	if q.head > len(q.list)/2 && q.head > 64 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, l)
	return true
}

// skip drops the first lane.
func (q *lanes) skip() *lane {
	l := q.list[q.head]
	l.queued &^= 1 << q.at
	q.list[q.head] = nil
	q.head++
	return l
}

// some reports whether there is a lane at its place, and drops what comes before it.
func (q *lanes) some() bool {
	for q.head < len(q.list) && q.list[q.head].at != q.at {
		q.skip()
	}
	return q.head < len(q.list)
}

// turns is a queue of lanes in which the tenants take turns: however many one has, the
// first of each other comes before its second.
type turns struct {
	at    place             // where the lanes are that count
	of    map[string]*lanes // by tenant
	order []*lanes          // whose turn is next
	head  int
	count int // of lanes, with those that are elsewhere by now
}

func (t *turns) push(l *lane) {
	q := t.of[l.tenant]
	if q == nil {
		if t.of == nil {
			t.of = map[string]*lanes{}
		}
		q = &lanes{tenant: l.tenant, at: t.at}
		t.of[l.tenant] = q
		t.line(q)
	}
	if q.push(l) {
		t.count++
	}
}

// line lets a tenant wait for its turn.
func (t *turns) line(q *lanes) {
	if t.head > len(t.order)/2 && t.head > 64 {
		n := copy(t.order, t.order[t.head:])
		clear(t.order[n:])
		t.order, t.head = t.order[:n], 0
	}
	t.order = append(t.order, q)
}

// pop takes the first lane that is at its place, of the tenant whose turn it is; nil:
// there is none.
func (t *turns) pop() *lane {
	if !t.some() {
		return nil
	}
	q := t.order[t.head]
	t.order[t.head] = nil
	t.head++
	l := q.skip()
	t.count--
	t.line(q)
	return l
}

// some reports whether there is a lane at its place, and drops what comes before
// it.
func (t *turns) some() bool {
	for t.head < len(t.order) {
		q := t.order[t.head]
		before := q.len()
		there := q.some()
		t.count -= before - q.len()
		if there {
			return true
		}
		delete(t.of, q.tenant)
		t.order[t.head] = nil
		t.head++
	}
	return false
}

// each does something with every lane that is at its place.
func (t *turns) each(do func(*lane)) {
	for _, q := range t.order[t.head:] {
		for _, l := range q.list[q.head:] {
			if l.at == t.at {
				do(l)
			}
		}
	}
}
