package relay

import (
	"container/heap"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// item is an event on its way to the sink.
type item struct {
	event    *transitions.Logged
	lane     *lane
	mark     *mark // nil: the cursor has passed it, and it is a row of outbox_dead
	seq      int64 // in the order in which events were taken in
	attempts int   // that failed because of it
	spared   int   // that failed because of the receiver
	suspect  bool  // the newest of those may have been its own doing
	kind     sink.Kind
	failure  string // the message of the newest failure
}

// place is where a lane is to be found.
type place int

const (
	nowhere   place = iota
	busy            // events of it are being delivered
	ready           // it has events that may be delivered now
	waiting         // nothing of it is tried before its time
	unwritten       // its rows have to be written, and read then
	hungry          // they have to be read
	reading         // they are being read
	blocked         // a person has to see to one of its rows first
)

// key names an instance across tenants.
type key struct {
	tenant   string
	instance uuid.UUID
}

// lane has the events of one instance, in order. While it is aside there are, or
// may be, rows of outbox_dead that come before everything that is live.
type lane struct {
	key
	live      []*item // from the log
	rows      []*item // from outbox_dead, as far as they were read
	aside     bool
	unwritten int       // events of it that were put aside and are not rows yet
	barred    bool      // aside, and the first of its rows waits for a person
	until     time.Time // nothing is tried before
	at        place
	queued    int  // bits: the places whose queues it is in
	out       bool // live events of it are being delivered
	stale     bool // its rows are to be read again after the call
}

// queue has what is delivered next.
func (l *lane) queue() *[]*item {
	if l.aside {
		return &l.rows
	}
	return &l.live
}

// first is what is delivered next; nil: nothing.
func (l *lane) first() *item {
	if q := *l.queue(); len(q) > 0 {
		return q[0]
	}
	return nil
}

// alarm is when a lane has waited enough. It is void when the lane waits for
// another time, or no longer.
type alarm struct {
	at   time.Time
	lane *lane
}

// alarms implements heap.Interface.
type alarms []alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(alarm)) }
func (a *alarms) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = alarm{}
	*a = (*a)[:last]
	return x
}

func (a *alarms) set(l *lane) { heap.Push(a, alarm{l.until, l}) }

// next is when the first lane has waited enough; zero: none waits.
func (a *alarms) next() time.Time {
	for len(*a) > 0 {
		first := (*a)[0]
		if first.lane.at == waiting && first.lane.until.Equal(first.at) {
			return first.at
		}
		heap.Pop(a)
	}
	return time.Time{}
}

// due takes a lane that has waited enough; nil: there is none.
func (a *alarms) due(now time.Time) *lane {
	if at := a.next(); at.IsZero() || at.After(now) {
		return nil
	}
	return heap.Pop(a).(alarm).lane
}
