package relay

import (
	"container/heap"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

type item struct {
	event    *transitions.Logged
	queue    *instanceQueue
	pending  *pendingPosition // nil: the cursor has passed it and it is a row of outbox_dead
	seq      int64            // order of admission
	attempts int              // that failed because of the event
	kind     sink.Kind        // of the last failure
	failure  string           // message of the last failure

	receiverFailures int  // attempts that failed because of the receiver
	unattributed     bool // the last of these may have failed because of the event
}

// queueState is the state of an instance queue.
type queueState int

const (
	idle       queueState = iota
	inCall                // a call has events of it
	ready                 // has deliverable events
	backingOff            // waits until notBefore
	unstored              // its rows must be stored, then read
	unread                // its rows must be read
	reading               // its rows are being read
	onHold                // an operator must redrive or skip its first row
)

type instanceKey struct {
	tenant   string
	instance uuid.UUID
}

// instanceQueue holds the events of an instance, in order. While it is deferred, it may have rows
// in outbox_dead that precede everything from the log.
type instanceQueue struct {
	instanceKey
	fromLog   []*item
	fromDead  []*item // the rows of outbox_dead that were read
	deferred  bool
	unstored  int       // deferred events that are not rows yet
	onHold    bool      // deferred, and its first row waits for an operator
	notBefore time.Time // earliest next attempt
	state     queueState
	inQueues  int  // bit set of the states whose fair queues contain it
	logInCall bool // a call has events from the log
	failed    bool // an event failed in the call being processed
	stale     bool // its rows must be read again after the call
}

// items returns the list that is delivered next.
func (q *instanceQueue) items() *[]*item {
	if q.deferred {
		return &q.fromDead
	}
	return &q.fromLog
}

// first returns the item that is delivered next, or nil.
func (q *instanceQueue) first() *item {
	if items := *q.items(); len(items) > 0 {
		return items[0]
	}
	return nil
}

// retryTimer is the time of a queue's next attempt. It is void if the queue has left backingOff or
// its time has changed.
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

// next returns the time of the first attempt, or zero.
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

// due removes and returns a queue whose next attempt is due, or nil.
func (t *retryTimers) due(now time.Time) *instanceQueue {
	if at := t.next(); at.IsZero() || at.After(now) {
		return nil
	}
	return heap.Pop(t).(retryTimer).queue
}

// fairQueue holds the instance queues that are in one state, round-robin over the tenants. Entries that have left the
// state are skipped.
type fairQueue struct {
	state   queueState
	tenants map[string][]*instanceQueue
	order   []string // next tenants
	count   int      // of entries, including those that have left the state
}

// push appends a queue unless it is present.
func (f *fairQueue) push(q *instanceQueue) {
	if q.inQueues&(1<<f.state) != 0 {
		return
	}
	q.inQueues |= 1 << f.state
	f.count++
	list, present := f.tenants[q.tenant]
	if !present {
		f.order = append(f.order, q.tenant)
	}
	if f.tenants == nil {
		f.tenants = map[string][]*instanceQueue{}
	}
	f.tenants[q.tenant] = append(list, q)
}

// pop removes and returns the first queue of the next tenant, or nil.
func (f *fairQueue) pop() *instanceQueue {
	if !f.has() {
		return nil
	}
	tenant := f.order[0]
	f.order = append(f.order[1:], tenant)
	return f.remove(tenant)
}

// remove removes and returns the first queue of a tenant.
func (f *fairQueue) remove(tenant string) *instanceQueue {
	list := f.tenants[tenant]
	q := list[0]
	list[0] = nil
	f.tenants[tenant] = list[1:]
	q.inQueues &^= 1 << f.state
	f.count--
	return q
}

// has reports whether a queue is in the state. It drops earlier entries that are not.
func (f *fairQueue) has() bool {
	for len(f.order) > 0 {
		tenant := f.order[0]
		for len(f.tenants[tenant]) > 0 {
			if f.tenants[tenant][0].state == f.state {
				return true
			}
			f.remove(tenant)
		}
		delete(f.tenants, tenant)
		f.order = f.order[1:]
	}
	return false
}

// each calls do for every queue in the state.
func (f *fairQueue) each(do func(*instanceQueue)) {
	for _, tenant := range f.order {
		for _, q := range f.tenants[tenant] {
			if q.state == f.state {
				do(q)
			}
		}
	}
}
