package commit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
)

// Where other nodes write the same logs a further committer begins when more waits than a group takes, and not
// before.
func TestAsFewCommittersAreAtWorkAsTheLoadNeeds(t *testing.T) {
	q := newQueue(Limits{QueueSize: 100, QueueBytes: 1 << 20, GroupSize: 4, GroupBytes: 1 << 20})
	q.leastPatience, q.mostPatience = time.Hour, time.Hour
	q.siblings.others = 1
	var first, second work
	q.push(testOps(2, 0))
	require.Truef(t, q.next(&first) && len(first.ops) == 2, "the first has %d", len(first.ops))
	ops := testOps(4, 0)
	for i, o := range ops {
		o.route = uint64(10 + i)
	}
	<-q.filled // of the first
	q.push(ops[:3])
	assert.True(t, len(q.filled) == 0 && !q.begins(), "a second committer begins for three commands, where a group takes four")
	q.push(ops[3:])
	assert.NotEqual(t, 0, len(q.filled), "nobody is told that a group is full")
	assert.Truef(t, q.next(&second) && len(second.ops) == 4, "the second has %d", len(second.ops))
}

// What is of a route at work waits for the end of that group, before what came later.
func TestARouteIsWithOneCommitterAtATime(t *testing.T) {
	q := newQueue(Limits{QueueSize: 100, QueueBytes: 1 << 20, GroupSize: 2, GroupBytes: 1 << 20})
	q.leastPatience, q.mostPatience = time.Hour, time.Hour
	ops := testOps(6, 0)
	for i, route := range []uint64{1, 2, 1, 3, 1, 4} {
		ops[i].route = route
	}
	q.push(ops)
	var first, second work
	q.next(&first)
	q.next(&second)
	require.Truef(t, len(second.ops) == 2 && second.ops[0] == ops[3] && second.ops[1] == ops[5],
		"the second has routes %v, want 3 and 4", second.routes)
	assert.Equal(t, 2, q.depth(), "wait, want 2")
	q.mu.Lock()
	q.end(&second)
	q.mu.Unlock()
	q.next(&first)
	assert.Truef(t, len(first.ops) == 2 && first.ops[0] == ops[2] && first.ops[1] == ops[4],
		"then the first has routes %v, want what waited, in order", first.routes)
	assert.Equal(t, (charge{}), q.charged, "counted, and nothing waits")
}

// Who leaves takes the command out, wherever it waits.
func TestQueue_CallerLeaves(t *testing.T) {
	q := newQueue(Limits{QueueSize: 3, QueueBytes: 1 << 20, GroupSize: 1, GroupBytes: 1 << 20})
	q.leastPatience, q.mostPatience = time.Hour, time.Hour
	ops := testOps(3, 0)
	gone := make(chan struct{})
	for _, o := range ops {
		o.route, o.canceled = 1, gone
	}
	q.push(ops)
	var first work
	q.next(&first)
	q.mu.Lock()
	q.park(q.busy[1], q.items.popFront())
	q.mu.Unlock()
	q.leave(ops)
	assert.Equal(t, 2, q.depth(), "wait; nobody has left yet")
	close(gone)
	q.leave(ops)
	assert.Truef(t, q.depth() == 0 && q.charged == (charge{}), "%d wait, %+v", q.depth(), q.charged)
	assert.True(t, !ops[0].settled.Load() && ops[1].settled.Load() && ops[2].settled.Load(),
		"settled must be those that waited, and not the one under way")
}

func TestANodeThatIsAloneHasAllItsCommittersBegin(t *testing.T) {
	q := newQueue(Limits{QueueSize: 100, QueueBytes: 1 << 20, GroupSize: 4, GroupBytes: 1 << 20})
	q.leastPatience, q.mostPatience = time.Hour, time.Hour
	ops := testOps(2, 0)
	var first, second work
	q.push(ops[:1])
	q.next(&first)
	q.push(ops[1:])
	assert.True(t, q.next(&second) && second.ops[0] == ops[1], "what waits was not taken")
}

// That others write a log is seen by the numbers of its transitions.
func TestANodeSeesThatOthersWriteItsLogs(t *testing.T) {
	q := testQueue(100, 1<<20)
	wrote := func(head int64) { q.wrote([]*part{{tenant: "a", head: head, steps: testOps(2, 0)}}) }
	for i := range 20 {
		wrote(int64(2 + 2*i))
	}
	assert.False(t, q.siblings.shared(), "nobody else has written")
	for i := range 20 {
		wrote(int64(100 + 3*i))
	}
	assert.True(t, q.siblings.shared(), "others have written")
	for i := range 20 {
		wrote(int64(159 + 2*i))
	}
	assert.False(t, q.siblings.shared(), "the others have ended")
}

// A committer of a shared log waits for the callers that it has just answered, but not for a single one.
func TestACommitterWaitsForThoseWhomItHasAnswered(t *testing.T) {
	q := testQueue(100, 1<<20)
	q.siblings.others, q.duration = 1, time.Hour // so that the wait is the longest that may be
	var w work
	q.push(testOps(1, 0))
	q.next(&w)
	q.push(testOps(20, 0))
	q.next(&w) // at once: one was answered
	require.Len(t, w.ops, 20, "took")
	q.leastPatience, q.mostPatience = time.Hour, time.Hour
	took := make(chan int)
	go func() {
		q.next(&w)
		took <- len(w.ops)
	}()
	back := testOps(20, 0)
	for i, o := range back {
		o.route = uint64(100 + i)
	}
	await.Eventually(t, "it waits, or has given up", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.siblings.expected == 20 || q.siblings.vain > 0
	})
	q.push(back)
	assert.Equal(t, 20, await.Receive(t, "the next group", took), "took of the 20 that came back")
}
