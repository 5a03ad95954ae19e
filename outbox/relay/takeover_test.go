package relay_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/transitions"
)

// frost suspends a node's statements, as if its process were stopped. They continue when it thaws.
type frost struct {
	pgtest.Queries
	mu   sync.Mutex
	gate chan struct{} // closed by thaw; nil: not frozen
	held chan string   // suspended statements
	done atomic.Int64  // completed batches
}

func newFrost() *frost { return &frost{held: make(chan string, 1000)} }

func (f *frost) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gate = make(chan struct{})
}

func (f *frost) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gate != nil {
		close(f.gate)
	}
	f.gate = nil
}

func (f *frost) wait(sql string) {
	f.mu.Lock()
	gate := f.gate
	f.mu.Unlock()
	if gate != nil {
		f.held <- sql
		<-gate
	}
}

func (f *frost) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	f.wait(d.SQL)
	return ctx
}

func (f *frost) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	f.wait(d.Batch.QueuedQueries[2].SQL) // after BEGIN and the settings
	return ctx
}

func (f *frost) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) { f.done.Add(1) }

// startFrosty starts a node that can be frozen.
func startFrosty(t testing.TB, url string, lease time.Duration, sinks ...relay.Sink) (*node, *frost) {
	t.Helper()
	f := newFrost()
	n := newNode(t, url, func(c *relay.Config) { c.Pool, c.Lease = poolOf(t, url, f), lease }, sinks...)
	t.Cleanup(f.thaw)
	n.start(t)
	t.Cleanup(f.thaw) // before it is stopped
	return n, f
}

func holder(t testing.TB, pool *pgxpool.Pool, name string) string {
	t.Helper()
	list, err := relay.NewTable(pool, same).Sinks(t.Context(), "")
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(i inspect.SinkInfo) bool { return i.Name == name })
	return list[i].Node
}

// A node that is frozen during a delivery is replaced when its lease expires. After it thaws, its
// batch changes nothing.
func TestFrozenNodeIsFenced(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	to := &receiver{}
	first, frost := startFrosty(t, url, 2*time.Second, quick("main", to))
	head := publish(t, pool, tenant, "abc", first)
	cursorReaches(t, pool, "main", tenant, head)

	frost.freeze()
	head = publish(t, pool, tenant, "abcd") // no node is notified
	first.committed(tenant, head)           // except this one
	second := startNode(t, url, quick("main", to))
	cursorReaches(t, pool, "main", tenant, head)
	assert.Equal(t, second.name, holder(t, pool, "main"), "the holder")
	assert.Truef(t, second.Stats().TakenOver == 1 && second.log.Count("took over a sink") == 1, "it was not told: %+v", second.Stats())
	head = publish(t, pool, tenant, strings.Repeat("abcd", 50), second)
	cursorReaches(t, pool, "main", tenant, head)

	frost.thaw()
	eventually(t, "the first one knows", func() bool { return first.Stats().Lost > 0 })
	head = publish(t, pool, tenant, strings.Repeat("abcd", 50), first, second)
	cursorReaches(t, pool, "main", tenant, head)
	assert.Equal(t, second.name, holder(t, pool, "main"), "the holder")
	to.inOrder(t)
}

// A batch that arrives after a takeover changes nothing: neither cursor nor dead letters nor lease.
func TestLateBatchIsFenced(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	bad := refuses("2-0")
	first, frost := startFrosty(t, url, time.Hour, quick("main", bad))
	eventually(t, "it delivers", func() bool { return first.Stats().Stored > 0 })
	table := relay.NewTable(pool, same)

	inside, goOn := make(chan struct{}, 1), make(chan struct{})
	bad.set(func(r *receiver) {
		r.enter = func(context.Context, []transitions.Logged) {
			select {
			case inside <- struct{}{}:
				<-goOn
			default:
			}
		}
	})
	publish(t, pool, tenant, "ab", first)
	await.Receive(t, "a delivery begins", inside)
	frost.freeze()
	close(goOn)
	for sql := await.Receive(t, "its batch is on its way", frost.held); !strings.Contains(sql, "delivered = delivered"); {
		sql = await.Receive(t, "its batch is on its way", frost.held)
	}
	exec(t, pool, "UPDATE pawl.outbox_sink SET locked_until = now()") // expire the lease without the node's knowledge
	good := &receiver{}
	second := startNode(t, url, quick("main", good))
	cursorReaches(t, pool, "main", tenant, 2)
	if err := table.Move(t.Context(), "main", tenant, 1, "ann", ""); err != nil { // and back
		t.Fatal(err)
	}
	eventually(t, "it is delivered again", func() bool { return len(good.ids('b')) == 2 })
	cursorReaches(t, pool, "main", tenant, 2)
	before, answered := number(t, pool, "SELECT delivered FROM pawl.outbox_sink"), frost.done.Load()

	frost.thaw()
	eventually(t, "the late batch is answered", func() bool { return frost.done.Load() > answered })
	eventually(t, "the first one knows", func() bool { return first.Stats().Lost >= 1 })
	assert.Equal(t, int64(0), number(t, pool, "SELECT count(*) FROM pawl.outbox_dead"), "the late batch parked events")
	after := number(t, pool, "SELECT delivered FROM pawl.outbox_sink")
	assert.Equalf(t, before, after, "the late batch counted %d deliveries", after-before)
	assert.Equal(t, second.name, holder(t, pool, "main"), "the holder")
}

func TestStopFinishesAndHandsOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	inside, goOn := make(chan struct{}, 100), make(chan struct{})
	to := &receiver{enter: func(context.Context, []transitions.Logged) {
		inside <- struct{}{}
		<-goOn
	}}
	slow := func(s *relay.Sink) { s.Batch, s.Calls = 2, 3 }
	first := startNode(t, url, quick("main", to, slow))
	other := newNode(t, url, nil, quick("main", to, slow))
	other.start(t)
	firstHolds := first.Stats().Claimed == 1
	eventually(t, "one of them has it", func() bool {
		firstHolds = first.Stats().Claimed == 1
		return firstHolds || other.Stats().Claimed == 1
	})
	if !firstHolds {
		first, other = other, first
	}
	head := publish(t, pool, tenant, strings.Repeat("abcdefgh", 10), first)
	for range 3 {
		await.Receive(t, "a delivery begins", inside)
	}
	stopped := make(chan struct{})
	go func() {
		first.stop()
		close(stopped)
	}()
	select {
	case <-stopped:
		t.Fatal("it stopped before its deliveries had ended")
	case <-time.After(50 * time.Millisecond): // long enough to notice a write
	}
	to.set(func(r *receiver) { r.enter = nil })
	close(goOn)
	await.Receive(t, "it stops", stopped)
	assert.NotEqual(t, first.name, holder(t, pool, "main"), "the lease was not given back")
	other.Wake()
	cursorReaches(t, pool, "main", tenant, head)
	assert.Equal(t, 0, to.inOrder(t), "delivered twice")
	assert.Equal(t, int64(0), other.Stats().TakenOver, "it had to wait for the lease to run out")
	first.stop() // second stop
}

func TestStopCancelsCallsAtDeadline(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := poolOf(t, url, nil)
	inside := make(chan struct{}, 10)
	to := &receiver{enter: func(ctx context.Context, _ []transitions.Logged) {
		inside <- struct{}{}
		<-ctx.Done()
	}}
	to.fail = func(*transitions.Event, int) *sink.Failure { return sink.Fail(sink.Temporary, nil, "broken off") }
	n := startNode(t, url, quick("main", to))
	head := publish(t, pool, tenant, "abc", n)
	await.Receive(t, "a delivery begins", inside)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.Stop(ctx)
	assert.Equal(t, "", holder(t, pool, "main"), "the lease was not given back")
	to.set(func(r *receiver) { r.enter, r.fail = nil, nil })
	startNode(t, url, quick("main", to))
	to.wants(t, events(head))
	to.inOrder(t)
}

// Stop abandons a sink that ignores its cancelled context.
func TestStopAbandonsHangingSink(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	inside, goOn := make(chan struct{}, 10), make(chan struct{})
	to := &receiver{enter: func(context.Context, []transitions.Logged) {
		inside <- struct{}{}
		<-goOn
	}}
	n := startNode(t, url, quick("main", to, func(s *relay.Sink) { s.Timeout = time.Millisecond }))
	publish(t, n.pool, tenant, "a", n)
	await.Receive(t, "a delivery begins", inside)
	eventually(t, "somebody is told", func() bool { return n.log.Count("a call of a sink ignores its timeout") == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.Stop(ctx)
	assert.Equal(t, 1, n.log.Count("calls of a sink ignore their cancellation"), "nobody is told")
	assert.Equal(t, "", holder(t, poolOf(t, url, nil), "main"), "the lease was not given back")
	close(goOn)
}

// A call that never ends occupies one call slot and blocks its instance. Everything else continues,
// of every tenant, far past the window.
func TestHangingCallBlocksOnlyItsInstance(t *testing.T) {
	t.Parallel()
	inside, goOn := make(chan struct{}, 10), make(chan struct{})
	to := &receiver{}
	to.enter = func(_ context.Context, batch []transitions.Logged) {
		if batch[0].Instance == instanceOf('z') && batch[0].Position == 1 {
			inside <- struct{}{}
			<-goOn
		}
	}
	n := startNode(t, pgtest.URL(t), quick("main", to, func(s *relay.Sink) {
		s.Timeout, s.Calls, s.Batch, s.Window = time.Millisecond, 2, 1, 16
	}))
	head := publish(t, n.pool, tenant, "z"+strings.Repeat("abcdz", 20), n)
	await.Receive(t, "a delivery begins", inside)
	cursorReaches(t, n.pool, "main", tenant, head)
	assert.Equal(t, 0, len(to.ids('z')), "events of its instance were delivered")
	close(goOn)
	to.wants(t, events(head))
	to.inOrder(t)
}

// A node that lost a lease while its sink hangs does not block other nodes.
func TestLostLeaseIsNotRenewed(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	goOn := make(chan struct{})
	stuck, to := &receiver{enter: func(context.Context, []transitions.Logged) { <-goOn }}, &receiver{}
	short := func(c *relay.Config) { c.Every, c.Lease = 100*time.Millisecond, time.Second }
	first := newNode(t, url, short, quick("main", stuck))
	first.start(t)
	t.Cleanup(func() { close(goOn) })
	head := publish(t, first.pool, tenant, "a", first)
	eventually(t, "a delivery begins", func() bool {
		stuck.mu.Lock()
		defer stuck.mu.Unlock()
		return stuck.calls == 1
	})
	tx, err := poolOf(t, url, nil).Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }() // no-op after commit
	_, err = tx.Exec(t.Context(), "SELECT FROM pawl.outbox_sink FOR UPDATE")
	require.NoError(t, err)
	eventually(t, "the lease is lost", func() bool { return first.Stats().Lost >= 1 })
	require.NoError(t, tx.Rollback(t.Context()))
	polls := first.Stats().Polls
	eventually(t, "it has polled twice", func() bool { return first.Stats().Polls >= polls+2 })
	second := newNode(t, url, short, quick("main", to))
	second.start(t)
	cursorReaches(t, second.pool, "main", tenant, head)
}
