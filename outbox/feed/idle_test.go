package feed_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// These tests count statements of an idle node, so they must let time pass.
const quietTime = 1500 * time.Millisecond

// quietly lets time pass until a period has at most the given number of queries. A slow machine may
// delay earlier ones.
func quietly(t testing.TB, n *node, most func(time.Duration) int) {
	t.Helper()
	for range 3 {
		before, begun := n.Count(all), time.Now()
		await.Pass("nothing happens", quietTime)
		got, took := n.Count(all)-before, time.Since(begun)
		if got <= most(took) {
			return
		}
		t.Logf("%d queries in %s", got, took)
	}
	t.Error("it is never quiet")
}

func TestIdleFollowersCostOneQueryPerPoll(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), false)
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 10 {
		r := n.reader(t, 0)
		work.Go(func() { _, _ = r.f.Next(ctx) }) // waits until the test ends
	}
	for _, other := range []string{"b", "c", "d"} { // tails of other tenants
		f := n.Follow(other, 0)
		defer f.Close()
	}
	eventually(t, "every tail has begun and is at the end", func() bool { return n.Count(head) >= 4 && n.Count(poll) > 0 })
	quietly(t, n, func(took time.Duration) int { return int(took/time.Second) + 1 })
	cancel()
	work.Wait()
}

func TestStopEndsAllWaits(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), false)
	last := n.publish(t, 3)
	r, waiting := n.reader(t, 0), n.reader(t, last)
	r.mustReadTo(t, last)
	done := make(chan error, 10)
	for range cap(done) {
		f := n.Follow(tenant, last)
		defer f.Close()
		go func() { _, err := f.Next(t.Context()); done <- err }()
	}
	n.Stop()
	n.Stop()
	for range cap(done) {
		err := <-done
		assert.Equalf(t, workflow.ShuttingDown, workflow.CodeOf(err), "got %v, want shutting_down", err)
	}
	for name, f := range map[string]*reader{"one that waited": waiting, "one from before": r, "a new one": n.reader(t, 0)} {
		_, err := f.f.Next(t.Context())
		assert.Equalf(t, workflow.ShuttingDown, workflow.CodeOf(err), "%s: got %v, want shutting_down", name, err)
	}
	n.Committed(tenant, last+1, nil) // a late commit is harmless
}

// Not parallel: it inspects all goroutines of the process.
func TestTailEndsWithLastFollower(t *testing.T) {
	n := startNode(t, pgtest.URL(t), false)
	tails := func() int {
		buf := make([]byte, 1<<20)
		return strings.Count(string(buf[:runtime.Stack(buf, true)]), "feed.(*tail).run(")
	}
	require.Equal(t, 0, tails(), "tails before")
	a, b, other := n.Follow(tenant, 0), n.Follow(tenant, 0), n.Follow("other", 0)
	eventually(t, "one tail for each tenant", func() bool { return tails() == 2 })
	a.Close()
	a.Close() // counts once
	other.Close()
	eventually(t, "the other's tail ends", func() bool { return tails() == 1 })
	r := &reader{f: b}
	r.mustReadTo(t, n.publish(t, 2))
	assert.Equal(t, 1, tails(), "tails with one follower left")
	b.Close()
	eventually(t, "the last tail ends", func() bool { return tails() == 0 })
	again := n.reader(t, 0) // a new tail starts
	again.mustReadTo(t, 2)
	n.Stop()
	assert.Equal(t, 0, tails(), "tails after Stop")
}
