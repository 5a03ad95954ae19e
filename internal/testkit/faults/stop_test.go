package faults

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The node stops during single commands, lists, transitions with SQL and commands that wait for a lock. Every caller gets an answer, exactly
// the commands that were answered as done are durable, and no goroutine remains.
func TestStop_UnderLoad(t *testing.T) {
	// Not parallel: it inspects all goroutines.
	pool := database(t)
	_, err := pool.Exec(t.Context(), ledgerTable)
	require.NoError(t, err)
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.LockWait = patience })
	held := must(t, e, opening("held")).Instance
	release := hold(t, pool, holdInstance, held)
	f := e.Read().Follow("", 0)
	defer f.Close()
	followed := make(chan error, 1)
	ctx := bounded(t)
	go func() {
		for {
			if _, err := f.Next(ctx); err != nil {
				followed <- err
				return
			}
		}
	}()

	var told sync.Map // keys of commands that succeeded
	var done atomic.Int64
	note := func(c transitions.Command, err error) (again bool) {
		if err == nil {
			told.Store(c.Key, true)
			done.Add(1)
			return true
		}
		wantCode(t, c.Key, err, workflow.ShuttingDown)
		return false
	}
	var work sync.WaitGroup
	for caller := range 12 {
		work.Go(func() {
			for n := 0; ; n++ {
				x := fmt.Sprintf("%d-%d", caller, n)
				cs := []transitions.Command{opening(x), onCounter(x, "add", x, `{"by":1}`),
					onCounter(x, "write", x+"w", fmt.Sprintf(`{"what":%q}`, x))}
				again := true
				if caller%2 == 0 {
					for i, r := range e.SubmitMany(ctx, cs) {
						again = note(cs[i], r.Err) && again
					}
				} else {
					_, err := e.Submit(ctx, cs[0])
					again = note(cs[0], err)
				}
				if !again {
					return
				}
			}
		})
	}
	aside := wentAside(e)
	waiting := submit(ctx, e, onCounter("held", "add", "held", `{"by":1}`))
	await.Eventually(t, "there is load", func() bool { return done.Load() > 500 && aside() > 0 })
	time.AfterFunc(300*time.Millisecond, release)
	stop(t, e)
	stop(t, e)
	work.Wait()
	assert.NoError(t, (<-waiting).err, "the command that waited for a lock")
	wantCode(t, "the follower", <-followed, workflow.ShuttingDown)
	rows, err := pool.Query(bounded(t), `SELECT key FROM pawl.command WHERE key NOT IN ('open held', 'held')`)
	require.NoError(t, err)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for _, key := range keys {
		_, ok := told.Load(key)
		assert.Truef(t, ok, "%s is durable and its caller got an error", key)
	}
	assert.Equal(t, done.Load(), int64(len(keys)), "durable commands")
	f.Close()
	wantNothingRunning(t)
}

// wantNothingRunning fails the test unless all goroutines of the engine end soon.
func wantNothingRunning(t testing.TB) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("still running:\n%s", strings.Join(left, "\n\n"))
		}
	}()
	buf := make([]byte, 16<<20)
	await.Eventually(t, "no goroutine of the engine runs", func() bool {
		left = strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		left = slices.DeleteFunc(left, func(g string) bool {
			return !strings.Contains(g, "pawl/engine") || strings.Contains(g, "pawl/internal/testkit/faults")
		})
		return len(left) == 0
	})
}

// A stop whose context expires abandons a command that waits for a lock. Its caller gets a retryable error, and the command has no effect.
func TestStopWithDeadline_WaitingCommandFails(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.LockWait = time.Hour })
	x := must(t, e, opening("x")).Instance
	release := hold(t, pool, holdInstance, x)
	aside := wentAside(e)
	waiting := submit(underLoad(t), e, onCounter("x", "add", "1", `{"by":1}`))
	await.Eventually(t, "the command waits aside", func() bool { return aside() > 0 })
	ctx, cancel := context.WithTimeout(bounded(t), 100*time.Millisecond)
	defer cancel()
	stopped := make(chan struct{})
	go func() { defer close(stopped); e.Stop(ctx) }()
	select {
	case <-stopped:
	case <-time.After(patience):
		t.Fatal("the stop waits")
	}
	a := <-waiting
	info := workflow.CodeOf(a.err).Info()
	assert.Truef(t, info.Retry && info.Status == 503, "the caller was told %v", a.err)
	release()
	other := start(t, pool)
	assert.False(t, must(t, other, onCounter("x", "add", "1", `{"by":1}`)).Replayed, "it had been done")
	wantSound(t, other, pool)
}

// A command whose caller leaves before its execution starts is not executed. After the start, the key finds its result.
func TestCallerLeaves_KeyFindsResult(t *testing.T) {
	t.Parallel()
	w, entered, open := gated()
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) { c.Workflows, c.Pipeline.Committers = []workflow.Source{w}, 1 })
	must(t, e, opening("x"))
	ctx, leave := context.WithCancel(bounded(t))
	started, queued := onCounter("x", "wait", "started", `{}`), onCounter("x", "add", "queued", `{"by":1}`)
	first := submit(ctx, e, started)
	<-entered
	second := submit(ctx, e, queued)
	await.Eventually(t, "the second waits", func() bool { return e.Admin().Stats().Waiting == 1 })
	leave()
	wantCode(t, "left during execution", (<-first).err, workflow.TimedOut)
	wantCode(t, "left while queued", (<-second).err, workflow.TimedOut)
	open()
	assert.True(t, must(t, e, started).Replayed, "the started command was not executed")
	assert.False(t, must(t, e, queued).Replayed, "the queued command was executed")
	wantSound(t, e, pool)
}
