package relay_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// Frequent moves of one tenant's cursor do not delay others, and the lease stays with its node.
func TestMovesDoNotBlockOtherTenants(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{}
	n := startNode(t, url, quick("main", to))
	end := publish(t, n.pool, "mean", strings.Repeat("vwxyz", 20), n)
	cursorReaches(t, n.pool, "main", "mean", end)
	table := relay.NewTable(n.pool, same)
	over, first := make(chan struct{}), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for i := int64(0); ; i++ {
			select {
			case <-over:
				return
			default:
			}
			if err := table.Move(context.Background(), "main", "mean", i%2, "mallory", "because"); err != nil {
				t.Error(err)
				return
			}
			n.Wake()
			if i == 0 {
				close(first)
			}
		}
	})
	await.Receive(t, "the first move", first)
	var head int64
	for range 5 {
		head = publish(t, n.pool, tenant, strings.Repeat("abcde", 20), n)
		cursorReaches(t, n.pool, "main", tenant, head)
	}
	close(over)
	work.Wait()
	n.Wake()
	cursorReaches(t, n.pool, "main", "mean", end) // its own events arrive eventually
	to.inOrder(t)
	s := n.Stats()
	assert.Truef(t, s.Claimed == 1 && s.Lost == 0, "the sink was claimed %d times, and lost %d times", s.Claimed, s.Lost)
}

// A delivery in progress during a move ends before other events of its instance are delivered, and
// its result does not overwrite the move.
func TestMoveWaitsForDeliveries(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	inside, goOn := make(chan string, 100), make(chan struct{})
	to := refuses("7-0") // would become a dead letter
	n := startNode(t, url, quick("main", to))
	head := publish(t, n.pool, tenant, "aabbab", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	to.set(func(r *receiver) {
		r.enter = func(_ context.Context, batch []transitions.Logged) {
			if batch[0].Instance == instanceOf('a') {
				inside <- batch[0].ID()
				<-goOn
			}
		}
	})
	publish(t, n.pool, tenant, "a", n)
	require.Equal(t, "7-0", await.Receive(t, "the delivery begins", inside))
	before := len(to.ids('a'))
	require.NoError(t, relay.NewTable(n.pool, same).Move(t.Context(), "main", tenant, 1, "ann", ""))
	n.Wake()
	eventually(t, "the log is read anew", func() bool { return len(to.ids('b')) == 2*3 })
	got := to.ids('a')
	assert.Lenf(t, got, before, "meanwhile of the same instance came %v", got[before:])
	assert.Equal(t, int64(1), cursor(t, n.pool, "main", tenant), "the cursor is at")
	assert.Equal(t, int64(0), number(t, n.pool, "SELECT count(*) FROM pawl.outbox_dead"), "rows are deferred")
	close(goOn)
	cursorReaches(t, n.pool, "main", tenant, 7)
	got = to.ids('a')[before:]
	assert.Truef(t, slices.Equal(got, []string{"2-0", "5-0", "5-1"}), "after it of the same instance came %v", got)
	mustEqual(t, "dead letters", deadLetters(t, relay.NewTable(n.pool, same), inspect.DeadFilter{Sink: "main"}), []string{"7-0"})
	to.inOrder(t)
}

// A log without a reader can be moved: the cursor was just moved to its end while the receiver
// fails.
func TestMoveOfUnreadLog(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{}
	n := startNode(t, url, quick("main", to))
	table := relay.NewTable(n.pool, same)
	head := publish(t, n.pool, tenant, "aaaa", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	to.set(func(r *receiver) {
		r.fail = func(*transitions.Event, int) *sink.Failure { return sink.Fail(sink.Unavailable, nil, "down") }
	})
	move := func(position int64) {
		require.NoError(t, table.Move(t.Context(), "main", tenant, position, "ann", "because"))
		before := n.Stats().Stored
		n.Wake()
		eventually(t, "the node hears of it", func() bool { return n.Stats().Stored > before })
	}
	move(0)
	move(head)
	move(1)
	move(head)
	before := len(to.ids('a'))
	move(2)
	to.mends()
	cursorReaches(t, n.pool, "main", tenant, head)
	mustEqual(t, "delivered after the last move", to.ids('a')[before:], []string{"3-0", "4-0"})
	s := n.Stats()
	assert.Truef(t, s.Claimed == 1 && s.Lost == 0, "the sink was claimed %d times, and lost %d times", s.Claimed, s.Lost)
}

// Moving the cursor past a blocking event unblocks the tenant, even without later events.
func TestMoveToEndClearsBlock(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := refuses("2-0")
	n := startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Exhausted = relay.Block }))
	head := publish(t, n.pool, tenant, "aaa", n)
	table := relay.NewTable(n.pool, same)
	eventually(t, "it is blocked", func() bool {
		list, err := table.Sinks(t.Context(), "")
		return err == nil && list[0].Stuck == 1
	})
	require.NoError(t, table.Move(t.Context(), "main", tenant, head, "ann", "nobody needs them"))
	n.Wake()
	tries := func() (count int) {
		to.set(func(r *receiver) { count = r.tries[tenant+":2-0"] })
		return count
	}
	head = publish(t, n.pool, tenant, "a", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	before := tries()
	head = publish(t, n.pool, tenant, "a", n)
	cursorReaches(t, n.pool, "main", tenant, head)
	mustEqual(t, "delivered", to.ids('a'), []string{"1-0", "4-0", "5-0", "5-1"})
	after := tries()
	assert.Equalf(t, before, after, "the event that blocked was tried %d times after the move", after-before)
	assert.Equal(t, int64(0), number(t, n.pool, "SELECT count(*) FROM pawl.outbox_cursor WHERE failure <> ''"), "tenants are stuck")
}

// A failing receiver is probed with the available events. After an operator skipped them, the next
// event of any tenant probes it.
func TestProbeAfterOnlyEventIsSkipped(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	to := &receiver{fail: func(*transitions.Event, int) *sink.Failure { return sink.Fail(sink.Unavailable, nil, "down") }}
	n := startNode(t, url, quick("main", to))
	head := publish(t, n.pool, tenant, "a", n)
	table := relay.NewTable(n.pool, same)
	eventually(t, "it is found down", func() bool {
		list, err := table.Sinks(t.Context(), "")
		return err == nil && list[0].Failures > 0
	})
	require.NoError(t, table.Move(t.Context(), "main", tenant, head, "ann", "nobody needs it"))
	n.Wake()
	tries := func() (count int) {
		to.set(func(r *receiver) { count = r.tries[tenant+":1-0"] })
		return count
	}
	for last := -1; last != tries(); { // a poll notices the move
		last = tries()
		polls := n.Stats().Polls
		eventually(t, "it has polled twice", func() bool { return n.Stats().Polls >= polls+2 })
	}
	to.mends()
	head = publish(t, n.pool, "other", "b") // without a notification
	cursorReaches(t, n.pool, "main", "other", head)
}
