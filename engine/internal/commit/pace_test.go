package commit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

// slowed is a queue with groups of ten of one committer, of which each took a while and left something.
func slowed(group time.Duration) *queue {
	q := newQueue(Limits{Committers: 1, QueueSize: 1000, QueueBytes: 1 << 20, QueueWait: time.Second, GroupSize: 10, GroupBytes: 1 << 20})
	now := time.Now()
	for i := range 100 {
		q.pace.took(10, true, now.Add(time.Duration(i)*group))
	}
	return q
}

// Of a slow database fewer commands may wait than of a fast one: those for whom there is time.
func TestNoMoreMayWaitThanAreDoneInTime(t *testing.T) {
	for _, c := range []struct {
		group time.Duration
		want  int
	}{
		{time.Millisecond, 1000}, // 10,000 a second: as many as may wait at all
		{100 * time.Millisecond, 100},
		{time.Minute, 30}, // three groups always may
	} {
		q := slowed(c.group)
		n, _ := q.push(testOps(2000, 0))
		assert.Truef(t, n >= c.want-1 && n <= c.want+1, "groups of 10 that take %v each: %d may wait, want %d", c.group, n, c.want)
	}
}

func TestWhereAllIsTakenNothingIsKnownOfThePace(t *testing.T) {
	q := slowed(time.Minute)
	q.push(testOps(5, 0))
	take(q, 10, 1<<20)
	n, _ := q.push(testOps(2000, 0))
	assert.Equal(t, 1000, n, "may wait")
}

// A queue whose callers have left has no rate either: until the next group no caller waits.
func TestARestIsNoPace(t *testing.T) {
	q := slowed(time.Millisecond)
	ops := testOps(1, 0)
	q.push(ops)
	left := make(chan struct{})
	close(left)
	ops[0].canceled = left
	q.leave(ops)
	assert.Truef(t, q.depth() == 0 && q.pace == (pace{}), "%d wait, and the pace is %+v", q.depth(), q.pace)
}

// An import fills half of the time for which a command may wait, and those who cannot wait are not refused for it.
func TestBulkLeavesRoomForCallers(t *testing.T) {
	for _, c := range []struct {
		group     time.Duration
		bulk, all int
	}{{100 * time.Millisecond, 50, 100}, {time.Minute, 20, 30}} {
		p := New(Config{Limits: Limits{}})
		p.queue = slowed(c.group)
		soon, cancel := context.WithCancel(t.Context())
		cancel()
		bulk, _ := p.queue.pushAll(soon, testOps(2000, 0))
		assert.NoError(t, p.Admit(), "while others wait for room")
		single := 0
		for range 2000 {
			n, _ := p.queue.push(testOps(1, 0))
			single += n
		}
		assert.Truef(t, bulk >= c.bulk-1 && bulk <= c.bulk+1 && bulk+single >= c.all-1 && bulk+single <= c.all+1,
			"groups of 10 that take %v each: %d of those that can wait, and %d others; want %d of %d", c.group, bulk, single, c.bulk, c.all)
		assert.Error(t, p.Admit(), "it was refused, and the next is looked at")
	}
}

// A moment without progress is one group among many.
func TestThePaceIsOfManyGroups(t *testing.T) {
	var p pace
	now := time.Now()
	for range 1000 {
		now = now.Add(10 * time.Millisecond)
		p.took(100, true, now)
	}
	got := p.wait(10_000)
	assert.Truef(t, got >= 990*time.Millisecond && got <= 1010*time.Millisecond, "10,000 commands at 10,000 a second will take %v", got)
	p.took(100, true, now.Add(time.Second))
	got = p.wait(10_000)
	assert.Truef(t, got >= 2*time.Second && got <= 10*time.Second, "after a second without progress they will take %v", got)
	for range 100 {
		now = now.Add(10 * time.Millisecond)
		p.took(100, true, now.Add(time.Second))
	}
	got = p.wait(10_000)
	assert.Truef(t, got <= 1100*time.Millisecond, "a second later they will take %v", got)
}

func TestAFullQueueRefusesBeforeACommandIsLookedAt(t *testing.T) {
	p := New(Config{Limits: Limits{QueueSize: 1, QueueBytes: 1 << 20}})
	require.NoError(t, p.Admit())
	p.queue.push(testOps(2, 0))
	err := p.Admit()
	assert.Truef(t, workflow.CodeOf(err) == workflow.Overloaded && p.Stats().Refused == 1, "%v, %d refused", err, p.Stats().Refused)
	take(p.queue, 1, 1<<20)
	assert.NoError(t, p.Admit())
	p.queue.push(testOps(2, 0))
	p.queue.close() // whoever submits then is told that
	assert.NoError(t, p.Admit())
}
