package feed_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestFollowersReceiveEachEventOnce(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), false)
	const before, total = 1000, 4000
	n.publish(t, before)
	var readers []*reader
	for _, after := range []int64{0, before / 2, before - 1, before, before + 10, total - 1} {
		readers = append(readers, n.reader(t, after))
	}
	var work sync.WaitGroup
	for w := range 3 {
		random := rand.New(rand.NewPCG(1, uint64(w)))
		work.Go(func() {
			for left := (total - before) / 3; left > 0; {
				count := min(left, 1+random.IntN(60))
				head, err := n.write(t.Context(), tenant, count)
				if err != nil {
					t.Error(err)
					return
				}
				n.Committed(tenant, head, nil)
				left -= count
			}
		})
	}
	last := int64(before + 3*((total-before)/3))
	for _, r := range readers {
		work.Go(func() {
			assert.NoError(t, r.readTo(t.Context(), last))
		})
	}
	work.Wait()
}

func TestFollowerCatchesUpThroughTable(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	fast, slow := n.reader(t, 0), n.reader(t, 0)
	first := n.publish(t, 10)
	slow.mustReadTo(t, first)
	fast.mustReadTo(t, first)
	var head int64
	for range 9 { // more than two rings
		head = n.publish(t, 2000)
		fast.mustReadTo(t, head)
	}
	before := n.Count(logRead)
	slow.mustReadTo(t, head)
	caughtUp := n.Count(logRead) - before
	assert.NotEqual(t, 0, caughtUp, "the slow one never left the ring, so that this test proves nothing")
	if all := int(head / 512); caughtUp >= all {
		t.Errorf("the slow one needed %d reads, as many as for the whole log of %d: it did not come back to the ring", caughtUp, all)
	}
	// Both tails hold the ring, so one read serves both. A poll can cause one more.
	var reads []int
	for !slices.Contains(reads, 1) && len(reads) < 20 {
		before = n.Count(logRead)
		head = n.publish(t, 1)
		fast.mustReadTo(t, head)
		slow.mustReadTo(t, head)
		reads = append(reads, n.Count(logRead)-before)
	}
	assert.Contains(t, reads, 1, "reads for one transition and two followers in the ring")
}

func TestFollowersShareOneTail(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	var readers []*reader
	for range 100 {
		readers = append(readers, n.reader(t, 0))
	}
	round := func() (reads int) {
		before := n.Count(logRead)
		head := n.publish(t, 3)
		var work sync.WaitGroup
		for _, r := range readers {
			work.Go(func() {
				assert.NoError(t, r.readTo(t.Context(), head))
			})
		}
		work.Wait()
		return n.Count(logRead) - before
	}
	eventually(t, "everybody is in the ring", func() bool { return round() <= 2 })
	const rounds = 10
	reads := 0
	for range rounds {
		reads += round()
	}
	assert.Truef(t, reads <= 2*rounds, "%d reads of the log for %d commits and %d followers", reads, rounds, len(readers))
}

func TestPollFindsUnannouncedEvents(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	r := n.reader(t, 0)
	empty, err := r.f.Poll(t.Context())
	require.Truef(t, err == nil && len(empty.Events) == 0 && empty.Last == 0, "an empty log: %+v, %v", empty, err)
	if _, err := n.write(t.Context(), tenant, 600); err != nil { // more than one read
		t.Fatal(err)
	}
	for r.last < 600 {
		batch, err := r.f.Poll(t.Context())
		require.NoError(t, err)
		require.NotEqualf(t, 0, len(batch.Events), "Poll finds nothing after %d", r.last)
		require.NoError(t, r.take(batch))
	}
	batch, err := r.f.Poll(t.Context())
	assert.Truef(t, err == nil && len(batch.Events) == 0 && batch.Last == 600, "at the end: %+v, %v", batch, err)
}

func TestTenantsDoNotMix(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	r := n.reader(t, 0)
	for range 5 {
		other, err := n.write(t.Context(), "acme", 10)
		require.NoError(t, err)
		n.Committed("acme", other, nil)
		r.mustReadTo(t, n.publish(t, 2)) // reader.take checks the tenant
	}
}

func TestNextReturnsWithContext(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	r := n.reader(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := r.f.Next(ctx); done <- err }()
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)
	r.mustReadTo(t, n.publish(t, 3)) // works as before
}

func TestUnreadableLogLosesNothing(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.publish(t, 3)
	_, err := n.pool.Exec(t.Context(), "ALTER TABLE pawl.outbox RENAME TO elsewhere")
	require.NoError(t, err)
	r := n.reader(t, 0)
	for range 2 {
		_, err := r.f.Next(t.Context())
		require.Equalf(t, workflow.Unavailable, workflow.CodeOf(err), "got %v, want database_unavailable", err)
	}
	_, err = n.pool.Exec(t.Context(), "ALTER TABLE pawl.elsewhere RENAME TO outbox")
	require.NoError(t, err)
	r.mustReadTo(t, 3)
}

func TestBatchReportsHead(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	r := n.reader(t, 0)
	r.mustReadTo(t, n.publish(t, 1))
	head := n.publish(t, 2000)
	var batch transitions.Batch
	for batch.Last < head {
		var err error
		batch, err = r.f.Next(t.Context())
		require.NoError(t, err)
		assert.Equalf(t, head, batch.Head, "at %d the head is said to be", batch.Last)
	}
}
