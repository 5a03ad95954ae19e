package commit

import (
	"container/heap"
	"time"
)

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
