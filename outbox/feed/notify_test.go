package feed_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// A batch that arrives without a poll was announced by the other node.
func TestNotificationReachesOtherNode(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := startNode(t, url, false), startNode(t, url, false)
	eventually(t, "both nodes listen", func() bool { return here.Count("LISTEN") == 1 && there.Count("LISTEN") == 1 })
	r := there.reader(t, 0)
	r.mustReadTo(t, here.publish(t, 1))
	// A poll in progress may deliver one batch, but not two.
	for begun, without := time.Now(), 0; without < 2; {
		polls := there.Count(poll)
		r.mustReadTo(t, here.publish(t, 1))
		if without++; there.Count(poll) > polls {
			without = 0
		}
		require.True(t, time.Since(begun) <= limit, "every transition came with a poll: the notifications are not heard")
	}
}

func TestWrongNotificationCostsOneRead(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	r := n.reader(t, 0)
	r.mustReadTo(t, n.publish(t, 1))
	n.NoteHead(tenant, -5)
	n.NoteHead("nobody", 1)
	reads := n.Count(logRead)
	n.NoteHead(tenant, 1_000_000)
	eventually(t, "the tail reads", func() bool { return n.Count(logRead) > reads })
	await.Pass("what it does when left alone", 200*time.Millisecond)
	if got := n.Count(logRead) - reads; got > 20 { // two, plus polls on a slow machine; an endless loop would make hundreds
		t.Errorf("%d reads because of one wrong hint", got)
	}
	r.mustReadTo(t, n.publish(t, 2))
}

// A commit during the read for a wrong notification is neither missed until the next poll, nor is
// the log assumed to be shorter than it is.
func TestWrongNotificationHidesNothing(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	r := n.reader(t, 0)
	r.mustReadTo(t, n.publish(t, 1))
	const more = 2000 // more than one read
	published := make(chan int64, 1)
	n.queries.mu.Lock()
	n.after = func() {
		head, err := n.write(t.Context(), tenant, more)
		assert.NoError(t, err)
		n.Committed(tenant, head, nil)
		published <- head
	}
	n.queries.mu.Unlock()
	n.NoteHead(tenant, 1_000_000)
	head := <-published
	polls := n.Count(poll)
	for r.last < head {
		batch, err := r.f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, r.take(batch))
		assert.Truef(t, batch.Head >= head, "at %d the head is said to be %d, want %d", batch.Last, batch.Head, head)
	}
	t.Logf("read with %d polls", n.Count(poll)-polls)
}

// Commits of this node are not read from the table; commits of other nodes in between are.
func TestLocalCommitsAreNotRead(t *testing.T) {
	t.Parallel()
	n, other, log, r := startFollowed(t)
	reads, polls := n.Count(logRead), n.Count(poll)
	for i := range 100 {
		r.mustReadTo(t, n.handOver(t, log, 1+i%7))
	}
	// A poll or a notification may announce a commit before it is passed on; otherwise all hundred
	// would be read.
	if got, polled := n.Count(logRead)-reads, n.Count(poll)-polls; got > 50+polled {
		t.Errorf("%d reads, %d polls", got, polled)
	}
	_, err := other.write(t.Context(), tenant, 3)
	require.NoError(t, err)
	r.mustReadTo(t, n.handOver(t, log, 2))
}

// A commit that a read has returned before it was announced causes no other read. Otherwise a busy
// node would read every commit.
func TestCommitIsReadOnce(t *testing.T) {
	t.Parallel()
	n, _, log, r := startFollowed(t)
	var during atomic.Int64 // commits during a read
	reads := n.Count(logRead)
	n.queries.mu.Lock()
	n.before = func() {
		if during.Load() < 50 {
			n.handOver(t, log, 1)
			during.Add(1)
		}
	}
	n.queries.mu.Unlock()
	r.mustReadTo(t, n.publish(t, 1)+1)
	polls := n.Count(poll)
	eventually(t, "the node polls twice", func() bool { return n.Count(poll) >= polls+2 })
	got := n.Count(logRead) - reads
	if polled := n.Count(poll); got > 1+polled { // a poll may announce a commit first
		t.Errorf("%d reads, %d polls: each brought what was committed as it began", got, polled)
	}
	r.mustReadTo(t, n.handOver(t, log, 1))
}
