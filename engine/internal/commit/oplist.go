package commit

import (
	"container/heap"
	"time"
)

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

// alarm is when something of the retry lane is to be looked at.
type alarm struct {
	at    time.Time
	of    any // *routeQueue or *tenantQueues
	set   bool
	index int // among the alarms, while it is set
}

// alarms are those that are set, the next one first.
type alarms struct{ heap alarmHeap }

// next is the alarm that goes off next; nil: none is set.
func (s *alarms) next() *alarm {
	if len(s.heap) == 0 {
		return nil
	}
	return s.heap[0]
}

// set sets an alarm, or sets it anew.
func (s *alarms) set(a *alarm, at time.Time) {
	a.at = at
	if a.set {
		heap.Fix(&s.heap, a.index)
		return
	}
	a.set = true
	heap.Push(&s.heap, a)
}

func (s *alarms) cancel(a *alarm) {
	if a.set {
		a.set = false
		heap.Remove(&s.heap, a.index)
	}
}

type alarmHeap []*alarm

func (h alarmHeap) Len() int           { return len(h) }
func (h alarmHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarmHeap) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}

func (h *alarmHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}
