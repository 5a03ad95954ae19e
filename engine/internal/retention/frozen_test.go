package retention_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// A node that stands still for longer than its lease, just before its work, and
// wakes when another has it, does nothing and takes nothing back.
func TestFrozenNode_LeavesWork(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	c := newClock("2040-01-02")
	traffic(t, pool, c.now(), 50)
	c.skip(2 * day)
	still, wake := make(chan struct{}), make(chan struct{})
	i := &intruder{before: "pawl.purge", do: func() {
		close(still)
		<-wake
	}}
	frozen := runner(t, another(t, pool, i), "frozen", c)
	<-still
	other := runner(t, pool, "other", c, seldom)
	woken(t, "the other has done it", func() bool { return other.Stats().Expired == 100 }, other)
	asked := i.asked.Load()
	close(wake)
	eventually(t, "the one that was frozen has tried, and asked for the lease again", func() bool { return i.asked.Load() > asked+1 })
	before := other.Stats().Batches
	woken(t, "the other works on", func() bool { return other.Stats().Batches > before+5 }, other)
	s := frozen.Stats()
	assert.Truef(t, s.Batches == 0 && s.Failures == 0, "the one that was frozen did %+v", s)
	assert.Equal(t, "other 2", ask[string](t, pool, "SELECT claimed_by || ' ' || token FROM pawl.leadership"), "the lease 's")
}
