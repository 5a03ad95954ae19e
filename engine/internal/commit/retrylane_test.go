package commit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// theirs is the creation of an instance of a tenant's.
func (b *bench) theirs(tenant, key, text string) *decide.Prepared {
	b.t.Helper()
	p := b.command("open", key, uuid.Nil)
	p, err := decide.Prepare(transitionsOf(p, tenant, text), b.w, uuid.New)
	require.NoError(b.t, err)
	return p
}

// holdHead takes the head of a tenant's log, which must be there.
func (b *bench) holdHead(tenant string) (release func()) {
	b.t.Helper()
	return b.hold("SELECT FROM pawl.log WHERE tenant = '" + tenant + "' FOR UPDATE")
}

// hold has the locks of a statement until the test ends or release is called.
func (b *bench) hold(sql string) (release func()) {
	b.t.Helper()
	conn, err := pgx.ConnectConfig(b.t.Context(), b.pool.Config().ConnConfig.Copy())
	require.NoError(b.t, err)
	release = sync.OnceFunc(func() { _ = conn.Close(context.Background()) })
	b.t.Cleanup(release)
	for _, sql := range []string{"BEGIN", sql} {
		_, err := conn.Exec(b.t.Context(), sql)
		require.NoError(b.t, err)
	}
	return release
}

// waiting reads what waits in the retry lane, and how many routes it knows.
func (b *bench) waiting() (asides, all charge, routes int) {
	q := b.p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.inLane, q.charged, len(b.p.retry.routes)
}

func (b *bench) submit(ctx context.Context, p *decide.Prepared) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := b.p.Do(ctx, p)
		answer <- err
	}()
	return answer
}

// heldTenant has a log that another transaction has locked, which the pipeline knows.
func (b *bench) heldTenant() (release func()) {
	b.t.Helper()
	b.one(b.theirs("held", "first", ""))
	release = b.holdHead("held")
	ctx, leave := context.WithCancel(b.t.Context())
	answer := b.submit(ctx, b.theirs("held", "finds out", ""))
	await.Eventually(b.t, "the head is known to be held", func() bool {
		b.p.queue.mu.Lock()
		defer b.p.queue.mu.Unlock()
		t := b.p.retry.tenants["held"]
		return t != nil && t.held
	})
	leave()
	await.Receive(b.t, "the answer of who left", answer)
	return release
}

func TestRetryLane_HalfOfQueue(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.QueueSize = 20 })
	release := b.heldTenant()
	await.Eventually(t, "who left is forgotten", func() bool { _, all, _ := b.waiting(); return all.n == 0 })
	refused, waiting := 0, 0
	for i := range 40 { // one after the other: what is in the queue already is let in too
		answer := b.submit(t.Context(), b.theirs("held", fmt.Sprint(i), ""))
		await.Eventually(t, "it waits aside, or is refused", func() bool {
			aside, all, _ := b.waiting()
			assert.Truef(t, all.n <= 20, "%d wait in a queue of 20", all.n)
			select {
			case err := <-answer:
				assert.Equalf(t, workflow.Overloaded, codeOf(err), "got %v", err)
				refused++
				return true
			default:
				return aside.n > waiting
			}
		})
		aside, _, _ := b.waiting()
		waiting = aside.n
	}
	assert.Truef(t, refused >= 20, "%d of 40 were refused, more than half of the queue is taken", refused)
	for i := range 50 { // by all means while they wait: nobody lets go
		b.one(b.theirs("free", fmt.Sprint(i), ""))
	}
	release()
	await.Eventually(t, "what waited is done", func() bool { _, all, routes := b.waiting(); return all.n == 0 && routes == 0 })
}

// The commands of a route keep their order where one in the middle is let go.
func TestRetryLane_CallerOrder(t *testing.T) {
	b := newBench(t)
	release := b.heldTenant()
	first := b.theirs("held", "first of many", "")
	id := first.Instance
	on := func(key string) *decide.Prepared {
		p, err := decide.Prepare(transitionsOf(b.command("remind", key, id), "held", key), b.w, uuid.New)
		require.NoError(t, err)
		return p
	}
	stays, comes := b.p.Ticket(), b.p.Ticket()
	stays.SubmitMany(t.Context(), []*decide.Prepared{first})
	ctx, leave := context.WithCancel(t.Context())
	leaves := b.p.Ticket()
	leaves.SubmitMany(ctx, []*decide.Prepared{on("a"), on("b")})
	comes.SubmitMany(t.Context(), []*decide.Prepared{on("c")})
	await.Eventually(t, "they wait aside", func() bool { aside, _, _ := b.waiting(); return aside.n >= 3 })
	leave()
	for _, r := range leaves.Wait(ctx) {
		assert.Truef(t, codeOf(r.Err) == workflow.TimedOut && strings.Contains(r.Err.Error(), "nothing was done"), "who left got %v", r.Err)
	}
	release()
	assert.NoError(t, stays.Wait(t.Context())[0].Err)
	r := comes.Wait(t.Context())[0]
	assert.Truef(t, r.Err == nil && r.Receipt.Version != 0, "who stayed got %+v", r)
	var keys string
	const done = `SELECT string_agg(key, ' ' ORDER BY version) FROM pawl.audit WHERE instance = $1`
	err := b.pool.QueryRow(t.Context(), done, id).Scan(&keys)
	assert.Truef(t, err == nil && keys == "first of many c", "done were %q, %v", keys, err)
}

// One command of a held tenant tries; however many wait, others have the workers.
func TestOneCommandTriesAHeadThatIsHeld(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.QueueSize, c.Limits.RetryWorkers, c.Limits.LockWait = 1000, 4, 3*time.Second })
	b.heldTenant()
	for i := range 100 {
		b.submit(t.Context(), b.theirs("held", fmt.Sprint(i), ""))
	}
	await.Eventually(t, "all wait aside", func() bool { aside, _, _ := b.waiting(); return aside.n >= 99 })
	most := 0
	await.Eventually(t, "all have waited long enough", func() bool {
		b.p.queue.mu.Lock()
		defer b.p.queue.mu.Unlock()
		busy := 0
		for _, r := range b.p.retry.routes {
			if r.state == running {
				busy++
			}
		}
		most = max(most, busy)
		return len(b.p.retry.routes) == 0
	})
	assert.Truef(t, most <= 1, "%d tried at once", most)
}

// A connection costs the server so much when it is opened, and when it ends, that others feel it. One command at a time, which waits for
// a lock, takes one of the committers and one of the retry lane, whoever of them has it.
func TestOneCommandAtATimeTakesOneConnectionOfEach(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Limits.Committers, c.Limits.RetryWorkers = 4, 4 })
	id := b.opened()
	for i := range 12 {
		release := b.hold("SELECT FROM pawl.instance FOR UPDATE")
		answer := b.submit(t.Context(), b.command("remind", fmt.Sprint(i), id))
		await.Eventually(t, "it waits aside", func() bool { aside, _, _ := b.waiting(); return aside.n == 1 })
		release()
		require.NoError(t, await.Receive(t, "it is done", answer))
		for _, s := range []*runners{b.p.committers, b.p.retries} {
			await.Eventually(t, "nobody has a connection", func() bool { return len(s.open)+len(s.closed) == cap(s.open) })
		}
	}
	if c, r := len(b.p.committers.open), len(b.p.retries.open); c != 1 || r != 1 {
		t.Errorf("%d and %d are open", c, r)
	}
}
