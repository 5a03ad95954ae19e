package commit

import (
	"container/heap"
	"time"
)

// A waiting op is in a list in order of arrival. In the retry lane it is also in a list by age until it is settled.
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

func (l *opList) popFront() *op {
	o := l.first
	l.remove(o)
	return o
}

// list returns the list in which the op waits, or nil.
func (o *op) list() *opList { return o.places[inOrder].in }

// alarm is the time at which a queue of the retry lane is examined.
type alarm struct {
	at    time.Time
	of    any // *routeQueue or *tenantQueues
	set   bool
	index int // among the alarms, while it is set
}

// alarms is a heap of the alarms that are set, the next one first.
type alarms []*alarm

// next returns the alarm that goes off next, or nil.
func (s alarms) next() *alarm {
	if len(s) == 0 {
		return nil
	}
	return s[0]
}

func (s *alarms) set(a *alarm, at time.Time) {
	a.at = at
	if a.set {
		heap.Fix(s, a.index)
		return
	}
	a.set = true
	heap.Push(s, a)
}

func (s *alarms) cancel(a *alarm) {
	if a.set {
		a.set = false
		heap.Remove(s, a.index)
	}
}

func (s alarms) Len() int           { return len(s) }
func (s alarms) Less(i, j int) bool { return s[i].at.Before(s[j].at) }
func (s alarms) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *alarms) Push(x any) {
	a := x.(*alarm)
	a.index = len(*s)
	*s = append(*s, a)
}

func (s *alarms) Pop() any {
	last := len(*s) - 1
	a := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return a
}
