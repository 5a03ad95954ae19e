package commit

import (
	"context"
	"slices"
	"testing"
	"time"

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

func TestQueueRefusesAtOnceWhatItHasNoRoomFor(t *testing.T) {
	q := testQueue(3, 1<<20)
	if n, closed := q.push(testOps(5, 0)); n != 3 || closed {
		t.Errorf("took %d, closed %v; want 3 of 5, open", n, closed)
	}
	if n, _ := q.push(testOps(1, 0)); n != 0 {
		t.Errorf("a full queue took %d", n)
	}
}

// All of a bulk is in the queue when it turns out that its tenant's head is held.
func TestABulkWhoseHeadIsFoundToBeHeldLeavesRoomForOthers(t *testing.T) {
	const size = 20
	for _, by := range []struct{ n, bytes, payload int }{{size, 1 << 20, 0}, {1000, size * 1000, 600}} {
		q := testQueue(by.n, by.bytes)
		lane := newRetryLane(&Pipeline{}, q)
		of := func(tenant string, first uint64) []*op {
			ops := testOps(2*size, by.payload)
			for i, o := range ops {
				o.p.Tenant, o.route = tenant, first+uint64(i)
			}
			return ops
		}
		bulk := of("held", 0)
		all, _ := q.push(bulk)
		lane.push(take(q, all, 1<<30)...)
		if n, _ := q.push(of("free", 1000)); 2*n < all-1 {
			t.Errorf("of %d others have room for %d, while all of a bulk waits aside", all, n)
		}
		if n, _ := q.push(bulk[:1]); n != 0 {
			t.Error("more is taken that would wait aside")
		}
	}
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	q := testQueue(1000, 10_000)
	n, _ := q.push(testOps(100, 1000))
	if n != 3 {
		t.Errorf("took %d commands of about 3.5 kB into 10 kB; want 3", n)
	}
	if got := len(take(q, 1000, 1<<20)); got != 3 {
		t.Fatalf("gave back %d", got)
	}
	if n, _ := q.push(testOps(100, 1000)); n != 3 {
		t.Errorf("after all was taken there is room for %d; want 3 again", n)
	}
}

func TestQueueGivesEverythingThatWaitsInOrderUpToTheBounds(t *testing.T) {
	q := testQueue(100, 1<<20)
	ops := testOps(10, 100)
	q.push(ops)
	var got []*op
	got = append(got, take(q, 4, 1<<20)...)
	got = append(got, take(q, 100, 1)...) // one, however small the bound
	got = append(got, take(q, 100, 1<<20)...)
	if len(got) != 10 {
		t.Fatalf("got %d of 10", len(got))
	}
	for i := range got {
		if got[i] != ops[i] {
			t.Fatalf("number %d is out of order", i)
		}
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
		if n := <-taken; n != 3 {
			t.Errorf("a sender got %d of 3 in", n)
		}
	}
}

func TestClosedQueueLetsEverybodyGoAndGivesWhatItHas(t *testing.T) {
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
			if !closed {
				t.Error("a sender was not told that the queue is closed")
			}
		case <-timeout:
			t.Fatal("a sender still waits for room")
		}
	}
	if got := len(take(q, 10, 1<<20)); got != 2 {
		t.Errorf("got %d of the 2 that waited", got)
	}
	if got := take(q, 10, 1<<20); got != nil {
		t.Errorf("an empty closed queue gave %d", len(got))
	}
}
