package commit

import (
	"context"
	"sync"
)

// queue is a queue of many senders, bounded in number and bytes, and one
// receiver, which takes everything that waits at once.
type queue struct {
	limit, byteLimit int

	mu     sync.Mutex
	items  []*op
	bytes  int
	closed bool

	filled chan struct{} // one token: something waits, or the queue is closed
	room   chan struct{} // one token: there is room again
}

func newQueue(limit, byteLimit int) *queue {
	return &queue{limit: limit, byteLimit: byteLimit, filled: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push adds as many ops as there is room for, in order, and returns how many. A
// closed queue takes none.
func (q *queue) push(ops []*op) (taken int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		signal(q.room) // others may wait for room, in vain
		return 0, true
	}
	for taken < len(ops) && q.hasRoom() {
		q.items = append(q.items, ops[taken])
		q.bytes += ops[taken].size()
		taken++
	}
	if taken > 0 {
		signal(q.filled)
	}
	if q.hasRoom() {
		signal(q.room)
	}
	return taken, false
}

func (q *queue) hasRoom() bool { return len(q.items) < q.limit && q.bytes < q.byteLimit }

// pushAll adds all ops, waiting for room. It returns how many it could add
// before the context ended or the queue was closed.
func (q *queue) pushAll(ctx context.Context, ops []*op) (taken int, closed bool) {
	for {
		n, closed := q.push(ops[taken:])
		taken += n
		if closed || taken == len(ops) {
			return taken, closed
		}
		select {
		case <-q.room:
		case <-ctx.Done():
			return taken, false
		}
	}
}

// take waits for ops and moves up to maxOps of them, and up to about maxBytes,
// into buf. It returns none when the queue is closed and empty.
func (q *queue) take(buf []*op, maxOps, maxBytes int) []*op {
	for {
		q.mu.Lock()
		n, bytes := 0, 0
		for n < len(q.items) && n < maxOps && (n == 0 || bytes < maxBytes) {
			bytes += q.items[n].size()
			n++
		}
		if n > 0 {
			buf = append(buf, q.items[:n]...)
			q.bytes -= bytes
			rest := copy(q.items, q.items[n:])
			clear(q.items[rest:])
			q.items = q.items[:rest]
			if rest > 0 || q.closed {
				signal(q.filled)
			}
			signal(q.room)
			q.mu.Unlock()
			return buf
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return nil
		}
		<-q.filled
	}
}

// close stops further pushes; what waits can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.filled)
	signal(q.room)
}

// depth is how many ops wait.
func (q *queue) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
