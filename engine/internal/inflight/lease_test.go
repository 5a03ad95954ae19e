package inflight

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// gated is work that says when it begins, and then waits to be told what to
// return, or for its context.
type gated struct {
	begun chan *workflow.Attempt
	tell  chan string
	cause chan error // why its context was done
}

func newGated() *gated {
	return &gated{begun: make(chan *workflow.Attempt, 100), tell: make(chan string, 100), cause: make(chan error, 100)}
}

func (g *gated) work(ctx context.Context, a *workflow.Attempt, _ string) (string, error) {
	g.begun <- a
	select {
	case result := <-g.tell:
		return result, nil
	case <-ctx.Done():
		g.cause <- context.Cause(ctx)
		return "", ctx.Err()
	}
}

// lapse lets the lease of a command run out now.
func lapse(t *testing.T, n *node, ref transitions.Ref) {
	t.Helper()
	exec(t, n.pool, "UPDATE pawl.command SET locked_until = clock_timestamp() - interval '1 second' WHERE tenant = $1 AND scope = $2 AND "+
		"key = $3", ref.Tenant, ref.Scope, ref.Key)
}

// frozen makes a node that does not extend leases, and cannot take over from itself.
func frozen(c *Config) { c.Lease, c.Workers = time.Hour, 1 }

func TestHeartbeat_ExtendsLease(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w, lease(3*time.Second), workers(1)) // it has nobody to take over from itself
	ref := n.accept(t, w, "a")
	await.Receive(t, "it runs", g.begun)
	first := read(t, pool, ref)
	later := becomes(t, pool, ref, "it is prolonged beyond its first end",
		func(r row) bool { return r.LockedUntil.After(first.LockedUntil.Add(time.Second)) })
	eventually(t, "more than one heartbeat is counted", func() bool { return n.Stats().Heartbeats > 1 })
	assert.Truef(t, later.Attempt == 1 && later.ClaimedBy == n.name && later.Revision > first.Revision &&
		later.ClaimedAt.Equal(first.ClaimedAt), "after heartbeats it is %+v", later.Record)
	g.tell <- "done"
	becomes(t, pool, ref, "it is done", func(r row) bool { return r.Status == transitions.Succeeded })
	s := n.Stats()
	assert.Truef(t, s.Heartbeats >= 2 && s.Lost == 0 && s.TakenOver == 0, "counted %+v", s)
}

func TestHeartbeat_LockedRow(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w, lease(6*time.Second), workers(2)) // it has nobody to take over from itself
	locked, free := n.accept(t, w, "a"), n.accept(t, w, "b")
	await.Receive(t, "one runs", g.begun)
	await.Receive(t, "both run", g.begun)
	unlock := lock(t, pool, locked)
	before := read(t, pool, locked)
	becomes(t, pool, free, "the other is prolonged", func(r row) bool { return r.Revision > 1 })
	eventually(t, "it has asked what is with the locked one", func() bool { return n.asked.Count(heldAsked) > 0 })
	got := read(t, pool, locked)
	require.Equal(t, before.Revision, got.Revision, "the row was written while it was locked")
	unlock()
	becomes(t, pool, locked, "it is prolonged when it can be", func(r row) bool { return r.LockedUntil.After(before.LockedUntil) })
	s := n.Stats()
	assert.Equal(t, int64(0), s.Lost, "leases were thought lost")
	g.tell <- ""
	g.tell <- ""
	eventually(t, "both are done", func() bool { return len(n.ended()) == 2 })
}

// Node A freezes for the time of its lease, and then continues in each way in which it could write.
func TestAZombieChangesNothing(t *testing.T) {
	t.Parallel()
	for name, wake := range map[string]func(g *gated, zombie *node, ref transitions.Ref){
		"by its outcome":   func(g *gated, _ *node, _ transitions.Ref) { g.tell <- "late" },
		"by its heartbeat": func(_ *gated, zombie *node, ref transitions.Ref) { zombie.Heard([]uint64{ref.Hash()}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			mine, theirs := newGated(), newGated()
			w := job(t, mine.work)
			zombie := startNode(t, pool, w, frozen)
			ref := zombie.accept(t, w, "a")
			await.Receive(t, "the first attempt", mine.begun)
			lapse(t, zombie, ref)
			other := startNode(t, pool, job(t, theirs.work))
			a := await.Receive(t, "the second attempt", theirs.begun)
			require.Equal(t, 2, a.Number, "the second attempt has number")
			before := read(t, pool, ref)
			wake(mine, zombie, ref)
			eventually(t, "the zombie knows", func() bool { return zombie.Stats().Lost == 1 && zombie.Stats().Busy == 0 })
			after := read(t, pool, ref)
			assert.Truef(t, after.Revision == before.Revision && after.ClaimedBy == other.name && after.Attempt == 2,
				"the zombie changed the row: %+v", after.Record)
			assert.False(t, name == "by its heartbeat" && await.Receive(t, "its context is done", mine.cause) != decide.ErrLost,
				"its context ended for another reason")
			eventually(t, "it says so", func() bool { return zombie.log.Count("the lease of a command is gone") == 1 })
			theirs.tell <- "ok"
			eventually(t, "the other ends it", func() bool { return len(other.ended()) == 1 })
			assert.Empty(t, zombie.ended(), "the zombie ended it")
		})
	}
}

// Whatever keeps it from being prolonged: the attempt ends when others may begin,
// also while the keeper waits for the database.
func TestLeaseExpires_CancelsContext(t *testing.T) {
	t.Parallel()
	for name, prevent := range map[string]func(t *testing.T, n *node, ref transitions.Ref) (end func()){
		"its row is locked": func(t *testing.T, n *node, ref transitions.Ref) func() { return lock(t, n.pool, ref) },
		"no connection is free": func(t *testing.T, n *node, _ transitions.Ref) func() {
			var conns []*pgxpool.Conn
			for range n.pool.Config().MaxConns {
				c, err := n.pool.Acquire(t.Context())
				require.NoError(t, err)
				conns = append(conns, c)
			}
			return sync.OnceFunc(func() {
				for _, c := range conns {
					c.Release()
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			g := newGated()
			w := job(t, g.work)
			n := startNode(t, pool, w, lease(2*time.Second), seldom)
			ref := n.accept(t, w, "a")
			await.Receive(t, "it runs", g.begun)
			end := prevent(t, n, ref)
			defer end()
			cause := await.Receive(t, "its context is done", g.cause)
			assert.Truef(t, cause == decide.ErrLapsed, "its context is done: %v", cause)
			end()
			g.tell <- ""
			becomes(t, pool, ref, "it is given back, and done", func(r row) bool {
				n.Wake() // a poll that failed while no connection was free is made again
				return r.Status == transitions.Succeeded && r.Attempt == 2
			})
		})
	}
}

// The database may stop a commit for longer than a lease: another node may have
// the command when the commit is known.
func TestSlowCommit_StartsOnlyWithLease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile string
		runs      int
	}{
		"nobody has it": {"", 1},
		"another node has it": {`UPDATE pawl.command SET claimed_by = 'other', attempt = attempt + 1, locked_until = now() + interval '1 hour'`,
			0},
		"it has ended":     {`DELETE FROM pawl.command`, 0},
		"it was cancelled": {`UPDATE pawl.command SET cancelled_by = 'bob'`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			g := newGated()
			g.tell <- ""
			w := job(t, g.work)
			n := startAfterLook(t, pool, w, seldom)
			require.True(t, n.Reserve(w.Name, w.Named("run")[0]), "no worker is free")
			r := due("a", leased(n.name, -time.Second))
			insert(t, pool, r)
			if tt.meanwhile != "" {
				exec(t, pool, tt.meanwhile)
			}
			l := r.landed(w)
			l.Since = time.Now().Add(-n.config.Lease - time.Second)
			n.Updated([]decide.FlightUpdate{l})
			n.atRest(t)
			assert.Len(t, g.begun, tt.runs, "it was begun times")
			if name == "it was cancelled" {
				f := n.failure(t)
				assert.Truef(t, f.Kind == workflow.FailureCancelled && !f.Unknown, "it failed with %+v", f)
			}
		})
	}
}

func TestLease_IgnoredContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	free := make(chan struct{})
	defer close(free)
	deaf := job(t, func(context.Context, *workflow.Attempt, string) (string, error) {
		<-free
		return "", nil
	}, func(a *activityOfText) { a.Timeout(300 * time.Millisecond) })
	n := startNode(t, pool, deaf, lease(600*time.Millisecond), workers(1))
	ref := n.accept(t, deaf, "a")
	begun := time.Now()
	other := startNode(t, pool, job(t, atOnce))
	eventually(t, "another does it", func() bool { return len(other.ended()) == 1 })
	got := read(t, pool, ref)
	assert.Truef(t, got.Attempt == 2 && got.Status == transitions.Succeeded, "it is %s by attempt %d", got.Status, got.Attempt)
	t.Logf("taken over %s after its begin", time.Since(begun).Round(time.Millisecond))
	assert.False(t, n.Reserve(deaf.Name, deaf.Named("run")[0]), "its worker is free, though it is not")
}

// One node alone takes its own lost attempt over, too.
func TestANodeTakesOverFromItself(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	free := make(chan struct{})
	w := job(t, func(_ context.Context, a *workflow.Attempt, _ string) (string, error) {
		if a.Number == 1 {
			<-free
		}
		return fmt.Sprint(a.Number), nil
	}, func(a *activityOfText) { a.Timeout(200 * time.Millisecond) })
	n := startNode(t, pool, w)
	lapse(t, n, n.accept(t, w, "a"))
	eventually(t, "it is done", func() bool { return len(n.ended()) == 1 })
	close(free)
	n.atRest(t) // the first attempt has ended
	list := n.ended()
	assert.Truef(t, len(list) == 1 && list[0].Resumed.Attempt == 2, "ended by %d attempts", len(list))
	s := n.Stats()
	assert.Truef(t, s.Lost == 1 && s.TakenOver == 1, "counted %+v", s)
}

func TestProgressIsStoredSoonAndTogether(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w)
	ref := n.accept(t, w, "a")
	a := await.Receive(t, "it runs", g.begun)
	writes, begun := n.asked.Count("u.progress::json"), time.Now()
	for i := range 1000 {
		require.NoError(t, a.Report(map[string]int{"done": i}))
	}
	reported := time.Now()
	got := becomes(t, pool, ref, "the newest is stored", func(r row) bool { return string(r.Progress) == `{"done":999}` })
	t.Logf("stored %s after it", time.Since(reported).Round(time.Millisecond))
	more := n.asked.Count("u.progress::json") - writes
	assert.Truef(t, more <= 3+int(time.Since(begun)/reportGap), "1000 reports were stored in %d writes", more)
	assert.Truef(t, got.Revision >= 2 && !got.LockedUntil.Before(got.ClaimedAt), "it is %+v", got.Record)
	eventually(t, "who watches is told", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.changed) > 0
	})
	g.tell <- ""
	eventually(t, "it is done", func() bool { return len(n.ended()) == 1 })
	if err := a.Report("late"); err != nil { // and does no harm
		t.Error(err)
	}
}

// PostgreSQL takes less deeply nested JSON than Go does.
func TestAReportThatCannotBeStoredCostsNoLease(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w, lease(3*time.Second), workers(1)) // it has nobody to take over from itself
	ref := n.accept(t, w, "a")
	a := await.Receive(t, "it runs", g.begun)
	n.report(n.flights()[0], []byte(strings.Repeat("[", 30_000)+strings.Repeat("]", 30_000)))
	eventually(t, "it is refused", func() bool { return n.log.Count("reports of progress were dropped") == 1 })
	err := a.Report(strings.Repeat("x", maxProgress))
	assert.Truef(t, err == nil && n.log.Count("too long") == 1, "a long report: %v, logged %q", err, n.log.List())
	before := read(t, pool, ref)
	becomes(t, pool, ref, "the lease is prolonged", func(r row) bool { return r.LockedUntil.After(before.LockedUntil) })
	require.NoError(t, a.Report(1))
	becomes(t, pool, ref, "the next report is stored", func(r row) bool { return string(r.Progress) == "1" })
	g.tell <- ""
	eventually(t, "it is done", func() bool { return len(n.ended()) == 1 })
	assert.Truef(t, n.log.Count("reports of progress were dropped") == 1 && n.log.Count("cannot prolong leases") == 0,
		"logged %q", n.log.List())
}

// The storing took half of the lease or longer: the lease may have run out before
// the node hears of it, so it is prolonged once more before the work is begun.
func TestSlowLease_NotStarted(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	var n *node
	heartbeats := make(chan int64, 1)
	w := job(t, func(context.Context, *workflow.Attempt, string) (string, error) {
		heartbeats <- n.Stats().Heartbeats
		return "ok", nil
	})
	n = startAfterLook(t, pool, w, seldom, lease(time.Second))
	exec(t, pool, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON pawl.command DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
		WHEN (OLD.revision = 1) EXECUTE FUNCTION slow()`)
	require.True(t, n.Reserve(w.Name, w.Named("run")[0]), "no worker is free")
	r := due("a", leased(n.name, -time.Second))
	insert(t, pool, r)
	l := r.landed(w)
	l.Since = time.Now().Add(-n.config.Lease)
	n.Updated([]decide.FlightUpdate{l})
	got := await.Receive(t, "it is begun", heartbeats)
	assert.Truef(t, got >= 2, "begun after %d heartbeats, the first of which took too long", got)
}
