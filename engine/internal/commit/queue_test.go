package commit

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
)

func testOps(n, payload int) []*op {
	ops := make([]*op, n)
	for i := range ops {
		ops[i] = &op{p: &decide.Prepared{Canonical: make([]byte, payload)}, batch: newBatch(), route: uint64(i)}
	}
	return ops
}

// testQueue is a queue whose groups have no bounds but those that a test takes with.
func testQueue(size, bytes int) *queue {
	return newQueue(Limits{QueueSize: size, QueueBytes: bytes, GroupSize: 1000, GroupBytes: 1 << 30})
}

// take is the work of a committer that has only this group.
func take(q *queue, maxOps, maxBytes int) []*op {
	q.mu.Lock()
	q.limits.GroupSize, q.limits.GroupBytes = maxOps, maxBytes
	q.mu.Unlock()
	var w work
	if !q.next(&w) {
		return nil
	}
	ops := slices.Clone(w.ops)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(&w)
	return ops
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	q := testQueue(1000, 10_000)
	n, _ := q.push(testOps(100, 1000))
	assert.Equal(t, 3, n, "took commands of about 3.5 kB into 10 kB; want 3")
	require.Equal(t, 3, len(take(q, 1000, 1<<20)), "gave back")
	if n, _ := q.push(testOps(100, 1000)); n != 3 {
		t.Errorf("after all was taken there is room for %d; want 3 again", n)
	}
}

func TestQueue_OrderAndBounds(t *testing.T) {
	q := testQueue(100, 1<<20)
	ops := testOps(10, 100)
	q.push(ops)
	var got []*op
	got = append(got, take(q, 4, 1<<20)...)
	got = append(got, take(q, 100, 1)...) // one, however small the bound
	got = append(got, take(q, 100, 1<<20)...)
	require.Len(t, got, 10)
	for i := range got {
		require.Truef(t, got[i] == ops[i], "number %d is out of order", i)
	}
}

func TestQueueSendersWaitForRoomAndNoneIsForgotten(t *testing.T) {
	q := testQueue(1, 1<<20)
	const senders = 20
	taken := make(chan int, senders)
	for range senders {
		go func() {
			n, _ := q.pushAll(context.Background(), testOps(3, 0))
			taken <- n
		}()
	}
	for received := 0; received < 3*senders; {
		received += len(take(q, 100, 1<<20))
	}
	for range senders {
		assert.Equal(t, 3, <-taken, "a sender of 3 in")
	}
}

func TestQueue_Close(t *testing.T) {
	q := testQueue(2, 1<<20)
	q.push(testOps(2, 0))
	const senders = 8
	left := make(chan bool, senders)
	for range senders {
		go func() {
			_, closed := q.pushAll(context.Background(), testOps(1, 0))
			left <- closed
		}()
	}
	q.close()
	timeout := time.After(time.Minute)
	for range senders {
		select {
		case closed := <-left:
			assert.True(t, closed, "a sender was not told that the queue is closed")
		case <-timeout:
			t.Fatal("a sender still waits for room")
		}
	}
	assert.Equal(t, 2, len(take(q, 10, 1<<20)), "the 2 that waited")
	got := take(q, 10, 1<<20)
	assert.Nilf(t, got, "an empty closed queue gave %d", len(got))
}
