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
	queue    *instanceQueue
	pending  *pendingPosition // nil: the cursor has passed it, and it is a row of outbox_dead
	seq      int64            // in the order in which events were taken in
	attempts int              // that failed because of it
	kind     sink.Kind        // of the newest failure
	failure  string           // its message

	receiverFailures int  // attempts that failed because of the receiver
	unattributed     bool // the newest of these may have failed because of the event
}

// queueState is where an instance queue stands.
type queueState int

const (
	idle       queueState = iota
	inCall                // events of it are being delivered
	ready                 // it has events that can be delivered now
	backingOff            // nothing of it is tried before its time
	unstored              // its rows have to be stored, and then read
	unread                // its rows have to be read
	reading               // they are being read
	onHold                // an operator has to redrive or skip one of its rows first
)

// instanceKey names an instance across tenants.
type instanceKey struct {
	tenant   string
	instance uuid.UUID
}

// instanceQueue has the events of one instance, in order. While it is aside there
// are, or may be, rows of outbox_dead that come before everything from the log.
type instanceQueue struct {
	instanceKey
	fromLog   []*item
	fromDead  []*item // from outbox_dead, as far as they were read
	aside     bool
	unstored  int       // events of it that were set aside and are not rows yet
	onHold    bool      // aside, and the first of its rows waits for an operator
	notBefore time.Time // nothing is tried before
	state     queueState
	inQueues  int  // bits: the states whose fair queues it is in
	logInCall bool // events from the log are being delivered
	failed    bool // an event of it failed in the call that is being settled
	stale     bool // its rows are to be read again after the call
}

// items are what is delivered next.
func (q *instanceQueue) items() *[]*item {
	if q.aside {
		return &q.fromDead
	}
	return &q.fromLog
}

// first is what is delivered next; nil: nothing.
func (q *instanceQueue) first() *item {
	if items := *q.items(); len(items) > 0 {
		return items[0]
	}
	return nil
}

// retryTimer is when a queue's next attempt is due. It is void when the queue waits
// for another time, or no longer.
type retryTimer struct {
	at    time.Time
	queue *instanceQueue
}

// retryTimers implements heap.Interface.
type retryTimers []retryTimer

func (t retryTimers) Len() int           { return len(t) }
func (t retryTimers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t retryTimers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *retryTimers) Push(x any)        { *t = append(*t, x.(retryTimer)) }
func (t *retryTimers) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	(*t)[last] = retryTimer{}
	*t = (*t)[:last]
	return x
}

func (t *retryTimers) set(q *instanceQueue) { heap.Push(t, retryTimer{q.notBefore, q}) }

// next is when the first attempt is due; zero: none.
func (t *retryTimers) next() time.Time {
	for len(*t) > 0 {
		first := (*t)[0]
		if first.queue.state == backingOff && first.queue.notBefore.Equal(first.at) {
			return first.at
		}
		heap.Pop(t)
	}
	return time.Time{}
}

// due takes a queue whose next attempt is due; nil: there is none.
func (t *retryTimers) due(now time.Time) *instanceQueue {
	if at := t.next(); at.IsZero() || at.After(now) {
		return nil
	}
	return heap.Pop(t).(retryTimer).queue
}
