package commit

// An op that waits is in a list of one kind: of those that wait for one thing, in their
// order. In the retry lane it is in a second list, by age, until it is settled.
const (
	inOrder = iota
	byAge
	kindsOfList
)

// opList is a list of ops with removal from the middle. It keeps the sum of their sizes.
type opList struct {
	kind        int
	first, last *op
	n, bytes    int
}

// place is where an op is in a list of one kind.
type place struct {
	in         *opList // nil: it is in none
	prev, next *op
}

func (l *opList) pushBack(o *op) { l.insert(o, l.last, nil) }

func (l *opList) pushFront(o *op) { l.insert(o, nil, l.first) }

func (l *opList) insert(o, prev, next *op) {
	o.places[l.kind] = place{l, prev, next}
	if prev == nil {
		l.first = o
	} else {
		prev.places[l.kind].next = o
	}
	if next == nil {
		l.last = o
	} else {
		next.places[l.kind].prev = o
	}
	l.n++
	l.bytes += o.size()
}

// remove takes out an op that is in this list.
func (l *opList) remove(o *op) {
	at := o.places[l.kind]
	if at.prev == nil {
		l.first = at.next
	} else {
		at.prev.places[l.kind].next = at.next
	}
	if at.next == nil {
		l.last = at.prev
	} else {
		at.next.places[l.kind].prev = at.prev
	}
	o.places[l.kind] = place{}
	l.n--
	l.bytes -= o.size()
}

// popFront takes out the first op; there must be one.
func (l *opList) popFront() *op {
	o := l.first
	l.remove(o)
	return o
}

// list is the list in which the op waits; nil: it is under way, or settled.
func (o *op) list() *opList { return o.places[inOrder].in }

// aged reports whether the op is in the retry lane, waiting or under way.
func (o *op) aged() bool { return o.places[byAge].in != nil }
