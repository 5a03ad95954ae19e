package faults

import (
	"context"
	"fmt"
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
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The node stops in the middle of everything: singles, many, own SQL, and
// commands that wait for a lock. Everybody is answered, what was answered as
// done is durable and nothing else is, and nothing keeps running.
func TestStop_UnderLoad(t *testing.T) {
	// Not parallel: it looks at all goroutines of the engine.
	pool := database(t)
	if _, err := pool.Exec(t.Context(), ledgerTable); err != nil {
		t.Fatal(err)
	}
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

	var told sync.Map // the keys that were answered as done
	var done, refused atomic.Int64
	note := func(c transitions.Command, err error) (again bool) {
		if err == nil {
			told.Store(c.Key, true)
			done.Add(1)
			return true
		}
		assert.Equalf(t, workflow.ShuttingDown, workflow.CodeOf(err), "%s: %v", c.Key, err)
		refused.Add(1)
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
	waitUntil(t, "there is load", func() bool { return done.Load() > 500 && aside() > 0 })
	time.AfterFunc(300*time.Millisecond, release)
	stop(t, e)
	stop(t, e)
	work.Wait()
	assert.NoError(t, (<-waiting).err, "the command that waited for a lock")
	wantCode(t, "the follower", <-followed, workflow.ShuttingDown)
	t.Logf("%d commands were done, %d were not", done.Load(), refused.Load())

	rows, err := pool.Query(bounded(t), `SELECT key FROM pawl.command WHERE key NOT IN ('open held', 'held')`)
	require.NoError(t, err)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for _, key := range keys {
		_, ok := told.Load(key)
		assert.Truef(t, ok, "%s is durable and was not answered as done", key)
	}
	assert.Equal(t, done.Load(), int64(len(keys)), "commands are durable were answered as done")
	f.Close()
	wantNothingRunning(t)
}

// wantNothingRunning fails the test when a goroutine of the engine is left. One
// that has said that it is done may still have to end.
func wantNothingRunning(t testing.TB) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("still running:\n%s", strings.Join(left, "\n\n"))
		}
	}()
	waitUntil(t, "nothing of the engine runs", func() bool {
		left = slices.DeleteFunc(goroutines(), func(g string) bool {
			return !strings.Contains(g, "pawl/engine") || strings.Contains(g, "pawl/internal/testkit/faults")
		})
		return len(left) == 0
	})
}

// A stop that may not wait gives up on what waits for a lock. Its caller is
// told to ask again, and finds that nothing was done.
func TestStopGivesUpOnWhatWaitsWhenItMayNotWait(t *testing.T) {
	t.Parallel()
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) { c.Pipeline.LockWait = time.Hour })
	x := must(t, e, opening("x")).Instance
	release := hold(t, pool, holdInstance, x)
	aside := wentAside(e)
	waiting := submit(underLoad(t), e, onCounter("x", "add", "1", `{"by":1}`))
	waitUntil(t, "the command waits aside", func() bool { return aside() > 0 })
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

// Callers that wait for room in a full queue when the node stops are told so,
// all of them.
func TestStopAnswersEveryCallerThatWaitsForRoom(t *testing.T) {
	t.Parallel()
	const callers = 16
	entered, gate := make(chan struct{}), make(chan struct{})
	var once sync.Once
	pool := database(t)
	e := start(t, pool, func(c *engine.Config) {
		c.Workflows = []workflow.Source{counterWith(func() { once.Do(func() { close(entered) }); <-gate })}
		c.Pipeline.Committers, c.Pipeline.QueueSize = 1, 2
	})
	must(t, e, opening("x"))
	ctx := bounded(t)
	first := submit(ctx, e, onCounter("x", "wait", "first", `{}`))
	<-entered

	replies := make(chan []transitions.Reply, callers)
	var queued sync.WaitGroup
	for i := range callers {
		queued.Add(1)
		go func() {
			queued.Done()
			var cs []transitions.Command
			for n := range 8 {
				cs = append(cs, onCounter("x", "add", fmt.Sprintf("%d-%d", i, n), `{"by":1}`))
			}
			replies <- e.SubmitMany(ctx, cs)
		}()
	}
	queued.Wait()
	waitUntil(t, "the queue is full", func() bool { return e.Admin().Stats().Waiting == 2 })
	waitParked(t, "commit.(*queue).pushAll", callers)

	stopped := make(chan struct{})
	go func() { defer close(stopped); stop(t, e) }()
	waitUntil(t, "the node takes no more", func() bool {
		_, err := e.Submit(ctx, onCounter("x", "add", "late", `{"by":1}`))
		return workflow.CodeOf(err) == workflow.ShuttingDown
	})
	close(gate)
	assert.NoError(t, (<-first).err)
	answers := map[workflow.Code]int64{}
	for range callers {
		for _, r := range <-replies {
			answers[workflow.CodeOf(r.Err)]++
		}
	}
	<-stopped
	done := number(t, pool, `SELECT count(*) FROM pawl.command WHERE transition = 'add'`)
	assert.Truef(t, done == answers[""] && done+answers[workflow.ShuttingDown] == 8*callers,
		"%d commands are durable, the answers were %v", done, answers)
}
