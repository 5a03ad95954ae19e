package feed

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type tail struct {
	f      *Feed
	tenant string
	ctx    context.Context
	stop   context.CancelFunc
	woken  chan struct{} // one token

	followers int // guarded by Feed.mu

	mu           sync.Mutex
	begun        bool                 // first and last are known
	first        int64                // the ring holds the transitions after first, up to last
	last         int64                //
	head         int64                // highest known position
	noted        int64                // highest position noted since the last read began
	ring         []transitions.Logged // shared with followers; only appended to
	bytes        int                  // size of the ring
	localCommits localCommits
	pager        pager
	changed      chan struct{} // closed and replaced when the ring grows
}

func (t *tail) wake(head int64) {
	t.mu.Lock()
	t.head, t.noted = max(t.head, head), max(t.noted, head)
	behind := t.begun && t.head > t.last
	t.mu.Unlock()
	if behind {
		select {
		case t.woken <- struct{}{}:
		default:
		}
	}
}

var readRetry = workflow.Retry{First: 100 * time.Millisecond, Max: time.Second}

func (t *tail) run() {
	for failures := 0; t.ctx.Err() == nil; {
		if err := t.advance(); err != nil {
			if t.ctx.Err() == nil {
				t.f.config.Logger.Warn("cannot read the log", "tenant", t.tenant, "error", err)
			}
			failures++
			if !backoff.Wait(t.ctx, readRetry, failures) {
				return
			}
			continue
		}
		failures = 0
		if t.behind() {
			continue
		}
		select {
		case <-t.woken:
		case <-t.ctx.Done():
		}
	}
}

func (t *tail) behind() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head > t.last
}

// advance reads the next piece of the log into the ring.
func (t *tail) advance() error {
	ctx, cancel := context.WithTimeout(t.ctx, readBudget)
	defer cancel()
	t.mu.Lock()
	begun, last := t.begun, t.last
	t.noted = 0
	t.mu.Unlock()
	if !begun {
		return t.begin(ctx)
	}
	if !t.behind() || t.takeLocal() { // not behind: an earlier read returned the events
		return nil
	}
	events, err := t.pager.read(ctx, t.f.config.Log, t.tenant, last, t.known())
	switch {
	case workflow.CodeOf(err) == workflow.EventsGone:
		return t.begin(ctx) // without the removed events; each follower gets the error itself
	case err != nil:
		return err
	}
	if len(events) == 0 {
		// The position noted before the read was wrong.
		t.mu.Lock()
		t.head = max(t.last, t.noted)
		t.mu.Unlock()
		return nil
	}
	t.grow(render(events))
	return nil
}

func (t *tail) begin(ctx context.Context) error {
	head, err := t.f.config.Log.Head(ctx, t.tenant)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun, t.first, t.last, t.head = true, head, head, max(head, t.head)
	t.ring, t.bytes, t.localCommits = nil, 0, localCommits{}
	t.notify()
	return nil
}

// known returns a position that the log has reached.
func (t *tail) known() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head
}

func (t *tail) grow(events []transitions.Logged) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring = append(t.ring, events...)
	t.bytes += sizeOf(events)
	t.last = events[len(events)-1].Position
	t.head = max(t.head, t.last)
	if t.last-t.first > 2*ringSize || t.bytes > 2*ringBytes {
		// Drop the older part of the ring. It makes a copy, because followers may be reading the old ring.
		keep := t.after(t.last - ringSize)
		for size := sizeOf(t.ring[keep:]); size > ringBytes && keep < len(t.ring); keep++ {
			size -= len(t.ring[keep].CloudEvent) + len(t.ring[keep].Payload)
		}
		if keep > 0 {
			t.first = t.ring[keep-1].Position
		}
		keep = t.after(t.first) // keep transitions whole
		t.ring = append(make([]transitions.Logged, 0, len(t.ring)), t.ring[keep:]...)
		t.bytes = sizeOf(t.ring)
	}
	t.notify()
}

func sizeOf(events []transitions.Logged) (size int) {
	for i := range events {
		size += len(events[i].CloudEvent) + len(events[i].Payload)
	}
	return size
}

func (t *tail) notify() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *tail) after(position int64) int {
	return sort.Search(len(t.ring), func(i int) bool { return t.ring[i].Position > position })
}

// read returns the events in the ring after a position. inRing is false if the position precedes
// the ring or the ring has not begun. changed is closed when the ring grows.
func (t *tail) read(position int64) (batch transitions.Batch, inRing bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	batch.Last, batch.Head = position, max(t.head, position)
	if !t.begun || position < t.first {
		return batch, false, t.changed
	}
	if position >= t.last {
		return batch, true, t.changed
	}
	from := t.after(position)
	to := t.after(min(position+readSize, t.last))
	batch.Events = t.ring[from:to:to]
	batch.Last = batch.Events[len(batch.Events)-1].Position
	return batch, true, t.changed
}

// render renders the CloudEvents into one allocation.
func render(events []transitions.Event) []transitions.Logged {
	out := make([]transitions.Logged, len(events))
	var text []byte
	ends := make([]int, len(events)+1)
	for i := range events {
		text = events[i].AppendCloudEvent(text)
		ends[i+1] = len(text)
	}
	for i := range events {
		out[i] = transitions.Logged{Event: events[i], CloudEvent: text[ends[i]:ends[i+1]:ends[i+1]]}
	}
	return out
}
