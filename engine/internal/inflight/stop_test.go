package inflight

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestStopLetsAttemptsFinish(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w)
	ref := n.accept(t, w, "a")
	await.Receive(t, "it runs", g.begun)
	waits := due("b")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop(t.Context())
	}()
	eventually(t, "it takes no more", n.stops)
	assert.False(t, n.Reserve(w.Name, w.Named("run")[0]), "a worker was reserved")
	insert(t, pool, waits)
	n.Wake()
	select {
	case <-stopped:
		t.Fatal("stopped while an attempt was under way")
	case <-g.cause:
		t.Fatal("the attempt was told to end")
	default:
	}
	g.tell <- "done"
	await.Receive(t, "it stops", stopped)
	got := read(t, pool, ref)
	assert.Equal(t, transitions.Succeeded, got.Status, "the command")
	got = read(t, pool, waits.ref())
	assert.Equal(t, 0, got.Attempt, "it claimed while it stopped")
	n.Stop(t.Context())
}

// A worker was reserved when Stop began, and the accept is committed then.
func TestStopGivesBackWhatLandsMeanwhile(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, func(context.Context, *workflow.Attempt, string) (string, error) {
		t.Error("it was begun")
		return "", nil
	})
	n := startNode(t, pool, w)
	reserve := func() bool { return n.Reserve(w.Name, w.Named("run")[0]) }
	if first, second := reserve(), reserve(); !first || !second {
		t.Fatal("no worker is free")
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop(t.Context())
	}()
	eventually(t, "it takes no more", n.stops)
	assert.False(t, n.Reserve(w.Name, w.Named("run")[0]), "a worker was reserved")
	r := due("a", leased(n.name, time.Minute))
	insert(t, pool, r)
	n.Updated([]decide.FlightUpdate{r.landed(w)})
	select {
	case <-stopped:
		t.Fatal("stopped while a worker was reserved")
	default:
	}
	n.Release(w.Name, w.Named("run")[0])
	await.Receive(t, "it stops", stopped)
	got := read(t, pool, r.ref())
	assert.Truef(t, got.Status == transitions.Pending && got.Attempt == 1 && got.Failures == 0 && !got.RunAt.After(time.Now()) &&
		got.LockedUntil.IsZero(), "the command is %+v", got.Record)
}

func TestStopTimeout_ReleasesAttempts(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g, careful := newGated(), newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w)
	ref := n.accept(t, w, "a")
	asks := job(t, careful.work, func(a *activityOfText) { a.AskOperator() })
	elsewhere := pgtest.Pool(t) // what one gives back is not the other's to take
	other := startNode(t, elsewhere, asks)
	unsure := other.accept(t, asks, "b")
	await.Receive(t, "it runs", g.begun)
	await.Receive(t, "the other runs", careful.begun)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.Stop(ctx)
	cause := await.Receive(t, "its context is done", g.cause)
	assert.Truef(t, cause == decide.ErrStopping, "its context is done because %v", cause)
	got := read(t, pool, ref)
	assert.Truef(t, got.Status == transitions.Pending && got.Attempt == 1 && got.Failures == 0 && !got.RunAt.After(time.Now()) &&
		got.Stuck == "", "the command is %+v", got.Record)
	other.Stop(ctx)
	if got := read(t, elsewhere, unsure); got.Status != transitions.FailedRetryable || got.Stuck != transitions.StuckUnknown {
		t.Errorf("what must not be repeated is %+v", got.Record)
	}
}

// Attempts are told to end while there is time left to give them back.
func TestStopKeepsToItsShareOfTheTime(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	g := newGated()
	w := job(t, g.work)
	n := startNode(t, pool, w)
	ref := n.accept(t, w, "a")
	await.Receive(t, "it runs", g.begun)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	n.Stop(ctx)
	assert.NoError(t, ctx.Err(), "it has used up its time")
	cause := await.Receive(t, "its context is done", g.cause)
	assert.Truef(t, cause == decide.ErrStopping, "its context is done because %v", cause)
	got := read(t, pool, ref)
	assert.Truef(t, got.Status == transitions.Pending && got.Failures == 0, "the command is %+v", got.Record)
	for _, left := range []time.Duration{-time.Second, 0, time.Second, 8 * time.Second, time.Hour} {
		grace := gracesOf(stopGrace, left)
		all := allGraces(grace)
		assert.Truef(t, grace >= 0 && all <= max(left, 0)/2 && (left <= 9*time.Second || grace == stopGrace),
			"of %s it takes %s, with graces of %s", left, all, grace)
	}
}

func TestStopDoesNotWaitForAFunctionThatIgnoresIt(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	begun, free := make(chan struct{}), make(chan struct{})
	w := job(t, func(context.Context, *workflow.Attempt, string) (string, error) {
		close(begun)
		<-free
		return "", nil
	})
	n := startNode(t, pool, w)
	n.stop.grace = 100 * time.Millisecond
	ref := n.accept(t, w, "a")
	await.Receive(t, "it runs", begun)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.Stop(ctx)
	n.Stop(ctx)
	got := read(t, pool, ref)
	assert.Truef(t, got.Status == transitions.Processing && got.Attempt == 1, "the command is %+v", got.Record)
	assert.NotEqualf(t, 0, n.log.Count("ignores that it was told to end"), "logged %q", n.log.List())
	close(free)
	eventually(t, "it ends", func() bool { return n.Stats().Busy == 0 })
}

func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := job(t, atOnce)
	n := newNode(t, pool, w)
	n.Stop(t.Context())
	n.Start()
	assert.True(t, !n.Reserve(w.Name, w.Named("run")[0]) && n.asked.Count("") == 0, "it works")
}
