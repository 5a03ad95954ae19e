package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// holdFor is the minimum time that locks are held.
const holdFor = time.Second

// hold begins a transaction on a connection of its own, as an operator with psql
// would, and runs the statement in it. The release rolls back.
func hold(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (release func()) {
	t.Helper()
	conn, err := pgx.ConnectConfig(bounded(t), pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	release = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := conn.Exec(ctx, "ROLLBACK") // who only closes is let go some time later
		err = errors.Join(err, conn.Close(ctx))
		assert.NoError(t, err, "let go")
	})
	t.Cleanup(release)
	_, err = conn.Exec(bounded(t), "BEGIN")
	require.NoError(t, err)
	_, err = conn.Exec(bounded(t), sql, args...)
	require.NoError(t, err)
	return release
}

const (
	holdInstance = `SELECT 1 FROM pawl.instance WHERE id = $1 FOR UPDATE`
	holdKey      = `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code, body,
			created_at, finished_at)
		VALUES ('default', $1, $2, sha256('somebody'), 'succeeded', 'counter', 'add', $3, 'psql', 200, '{}', now(), now())`
)

// Another session holds an instance and a key. The commands that need them wait, all others continue, and the waiting commands then execute
// in their order.
func TestHeldRows_OtherCommandsContinue(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.LockWait = 4 * patience })
	x := must(t, e, opening("x")).Instance
	y := must(t, e, opening("y")).Instance
	z := transitions.InstanceID("default", "counter", "z")
	releaseInstance := hold(t, pool, holdInstance, x)
	releaseKey := hold(t, pool, holdKey, "counter:"+y.String(), "held", y)
	releaseNew := hold(t, pool, `INSERT INTO pawl.instance (tenant, id, workflow, definition, business_key, state, version, data, open, chain,
			created_at, updated_at)
		VALUES ('default', $1, 'counter', 1, 'z', 'live', 1, '{}', true, sha256(''), now(), now())`, z)

	ctx := underLoad(t)
	aside := wentAside(e)
	var waiting []<-chan answered
	for i := range 3 {
		waiting = append(waiting, submit(ctx, e, onCounter("x", "add", fmt.Sprint(i), `{"by":1}`)))
	}
	waiting = append(waiting, submit(ctx, e, onCounter("x", "announce", "event", `{"by":1}`)),
		submit(ctx, e, onCounter("y", "add", "held", `{"by":1}`)), submit(ctx, e, opening("z")))
	// A key that is not committed is waited for in the database; an instance is
	// tried again and again.
	pgtest.WaitBlocked(t, pool, "INSERT INTO pawl.command")
	pgtest.WaitBlocked(t, pool, "INSERT INTO pawl.instance")
	await.Eventually(t, "all wait aside", func() bool { return aside() >= len(waiting) })

	keepBusy(t, ctx, e, holdFor, 1000)
	wantNoAnswer(t, waiting)
	releaseInstance()
	releaseKey()
	releaseNew()
	wantDone(t, waiting)
	for name, n := range map[string]int64{"x": 4, "y": 1, "z": 0} {
		assert.Equalf(t, n, number(t, pool, `SELECT (data->>'n')::bigint FROM pawl.instance WHERE business_key = $1`, name),
			"%s counted", name)
	}
	wantSound(t, e, pool)
}

// wentAside counts the commands that go to the retry lane from now on.
func wentAside(e *engine.Engine) func() int {
	before := e.Admin().Stats().Aside
	return func() int { return int(e.Admin().Stats().Aside - before) }
}

// wantNoAnswer fails the test when one of them is answered, whose locks are held.
func wantNoAnswer(t testing.TB, waiting []<-chan answered) {
	t.Helper()
	for i, w := range waiting {
		select {
		case a := <-w:
			t.Errorf("the waiting command %d was answered %d, %v while its lock was held", i, a.receipt.Status, a.err)
		default:
		}
	}
}

// keepBusy submits commands from several callers, singly and together, for a while
// and until so many are done.
func keepBusy(t testing.TB, ctx context.Context, e *engine.Engine, d time.Duration, least int64) {
	t.Helper()
	var done atomic.Int64
	var work sync.WaitGroup
	began := time.Now().UnixNano()
	until := time.Now().Add(d)
	for caller := range 6 {
		work.Go(func() {
			for n := 0; time.Now().Before(until) || done.Load() < least; n++ {
				x := fmt.Sprintf("busy %d-%d-%d", began, caller, n)
				cs := []transitions.Command{opening(x)}
				for i := range (caller % 2) * 40 {
					cs = append(cs, onCounter(x, "add", fmt.Sprint(i), `{"by":1}`))
				}
				for _, r := range e.SubmitMany(ctx, cs) {
					if r.Err != nil {
						t.Errorf("a command that nobody holds up: %v", r.Err)
						return
					}
					done.Add(1)
				}
			}
		})
	}
	work.Wait()
}

// A command that waits too long for a lock fails and leaves no rows.
func TestLockWaitIsBounded(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.LockWait = time.Second })
	x := must(t, e, opening("x")).Instance
	y := must(t, e, opening("y")).Instance
	releaseInstance := hold(t, pool, holdInstance, x)
	releaseKey := hold(t, pool, holdKey, "counter:"+y.String(), "held", y)
	ctx := bounded(t)
	cs := []transitions.Command{onCounter("x", "add", "held", `{"by":1}`), onCounter("y", "add", "held", `{"by":1}`)}
	first, second := submit(ctx, e, cs[0]), submit(ctx, e, cs[1])
	wantCode(t, "a held instance", (<-first).err, workflow.Locked)
	wantCode(t, "a held key", (<-second).err, workflow.Locked)
	assert.Equal(t, int64(0), number(t, pool, `SELECT count(*) FROM pawl.command WHERE key = 'held'`),
		"a command that was told to wait left its key")
	releaseInstance()
	releaseKey()
	for i, r := range e.SubmitMany(ctx, cs) {
		assert.Truef(t, r.Err == nil && !r.Receipt.Replayed && r.Receipt.Version == 2,
			"tried again, %d was answered %+v, %v", i, r.Receipt, r.Err)
	}
	wantSound(t, e, pool)
}

// Many instances are held at once. Commands with SQL of their own, which wait in
// the same place, still get their turn.
func TestHeldInstances_InTx(t *testing.T) {
	t.Parallel()
	const held = 100
	pool := database(t)
	_, err := pool.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.LockWait = 4 * patience })
	must(t, e, opening("free"))
	var ids []string
	for i := range held {
		ids = append(ids, must(t, e, opening(fmt.Sprint(i))).Instance.String())
	}
	release := hold(t, pool, `SELECT 1 FROM pawl.instance WHERE id = ANY($1) FOR UPDATE`, ids)
	ctx := underLoad(t)
	aside := wentAside(e)
	var waiting []<-chan answered
	for i := range held {
		waiting = append(waiting, submit(ctx, e, onCounter(fmt.Sprint(i), "add", "1", `{"by":1}`)))
	}
	await.Eventually(t, "all wait aside", func() bool { return aside() >= held })
	for n := range 5 {
		must(t, e, onCounter("free", "write", fmt.Sprint(n), fmt.Sprintf(`{"what":"%d"}`, n)))
	}
	wantNoAnswer(t, waiting)
	release()
	wantDone(t, waiting)
	wantSound(t, e, pool)
}

// SQL of a transition that meets a lock waits for it, and runs again.
func TestTransitionSQLWaitsForLock(t *testing.T) {
	t.Parallel()
	pool := database(t)
	_, err := pool.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	e := start(t, pool)
	must(t, e, opening("x"))
	release := hold(t, pool, `INSERT INTO ledger VALUES ('busy')`)
	waits := submit(bounded(t), e, onCounter("x", "write", "1", `{"what":"busy"}`))
	behind := submit(bounded(t), e, onCounter("x", "add", "2", `{"by":1}`))
	pgtest.WaitBlocked(t, pool, "INSERT INTO ledger")
	must(t, e, opening("y"))
	release()
	wantDone(t, []<-chan answered{waits, behind})
	assert.Equal(t, int64(1), number(t, pool, `SELECT count(*) FROM ledger`), "rows of the ledger")
	wantSound(t, e, pool)
}
