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

// hold executes a statement in a transaction of another session. release rolls it back.
func hold(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (release func()) {
	t.Helper()
	conn, err := pgx.ConnectConfig(bounded(t), pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	release = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := conn.Exec(ctx, "ROLLBACK") // closing alone releases the locks some time later
		assert.NoError(t, errors.Join(err, conn.Close(ctx)))
	})
	t.Cleanup(release)
	tx, err := conn.Begin(bounded(t))
	require.NoError(t, err)
	_, err = tx.Exec(bounded(t), sql, args...)
	require.NoError(t, err)
	return release
}

const (
	holdInstance = `SELECT 1 FROM pawl.instance WHERE id = $1 FOR UPDATE`
	holdKey      = `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code, body,
			created_at, finished_at)
		VALUES ('default', $1, $2, sha256('somebody'), 'succeeded', 'counter', 'add', $3, 'psql', 200, '{}', now(), now())`
)

// Another session holds many instances and a key. The commands that need them wait, all others continue, also those with SQL of their own,
// and the waiting commands then execute in their order.
func TestHeldRows_OtherCommandsContinue(t *testing.T) {
	t.Parallel()
	const many = 100
	pool := database(t)
	_, err := pool.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.LockWait = 4 * patience })
	held := []string{must(t, e, opening("x")).Instance.String()}
	for i := range many {
		held = append(held, must(t, e, opening(fmt.Sprint(i))).Instance.String())
	}
	y := must(t, e, opening("y")).Instance
	z := transitions.InstanceID("default", "counter", "z")
	releaseInstances := hold(t, pool, `SELECT 1 FROM pawl.instance WHERE id = ANY($1) FOR UPDATE`, held)
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
	for i := range many {
		waiting = append(waiting, submit(ctx, e, onCounter(fmt.Sprint(i), "add", "1", `{"by":1}`)))
	}
	waiting = append(waiting, submit(ctx, e, onCounter("x", "announce", "event", `{"by":1}`)),
		submit(ctx, e, onCounter("y", "add", "held", `{"by":1}`)), submit(ctx, e, opening("z")))
	// Commands wait for an uncommitted key in the database; a locked instance is tried repeatedly.
	pgtest.WaitBlocked(t, pool, "INSERT INTO pawl.command")
	pgtest.WaitBlocked(t, pool, "INSERT INTO pawl.instance")
	await.Eventually(t, "all wait aside", func() bool { return aside() >= len(waiting) })

	keepBusy(t, ctx, e, time.Second, 1000)
	must(t, e, opening("free"))
	must(t, e, onCounter("free", "write", "1", `{"what":"free"}`))
	for i, w := range waiting {
		select {
		case a := <-w:
			assert.Failf(t, "result while the lock is held", "command %d: %+v", i, a)
		default:
		}
	}
	releaseInstances()
	releaseKey()
	releaseNew()
	wantDone(t, waiting)
	for name, n := range map[string]int64{"x": 4, "y": 1, "z": 0} {
		assert.Equalf(t, n, number(t, pool, `SELECT (data->>'n')::bigint FROM pawl.instance WHERE business_key = $1`, name),
			"%s counted", name)
	}
	wantSound(t, e, pool)
}

// wentAside returns a count of the commands that go to the retry lane from now on.
func wentAside(e *engine.Engine) func() int {
	before := e.Admin().Stats().Aside
	return func() int { return int(e.Admin().Stats().Aside - before) }
}

// keepBusy submits commands from several callers, singly and together, for a duration and at least until so many have succeeded.
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
						t.Errorf("a command that needs no held lock: %v", r.Err)
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
		assert.NoErrorf(t, r.Err, "retry %d", i)
		assert.Falsef(t, r.Receipt.Replayed, "retry %d", i)
		assert.Equalf(t, int64(2), r.Receipt.Version, "retry %d", i)
	}
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
