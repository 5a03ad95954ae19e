package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// These tests count what happens while nothing happens, so they must let time
// go by.
const quietTime = 1500 * time.Millisecond

func TestHub_IdleReadsNothing(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), false)
	n.begin(t, ref("k"), ref("done"))
	n.finish(t, ref("done"))
	wantNext(t, n.watch(t, ref("done")), 1) // it is watched on, and changes no more
	w := n.watch(t, ref("k"))
	wantNext(t, w, 0)
	w.Close()
	w.Close()
	for range 2 { // a read that was under way may end in the first quiet time
		before, _ := n.readsSoFar()
		n.Changed([]transitions.Ref{ref("k")})
		await.Pass("nothing happens", quietTime)
		after, _ := n.readsSoFar()
		if after == before {
			return
		}
		t.Logf("%d reads in %s", after-before, quietTime)
	}
	t.Error("it is never quiet")
}

// Each waits for a command of another tenant.
func TestHub_ManyTenantsReads(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	const tenants = 5000
	n.exec(t, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
			phase, attempt, failures, revision, run_at, request, updated_at)
		SELECT 'tenant ' || i, 's', 'k', decode(repeat('00', 32), 'hex'), 'pending', 'order', 'pay', gen_random_uuid(), 'ann', now(),
			'working', 0, 0, 0, now(), '{}', now() FROM generate_series(1, $1) i`, tenants)
	list := make([]transitions.Ref, tenants)
	for i := range list {
		list[i] = transitions.Ref{Tenant: fmt.Sprint("tenant ", i+1), Scope: "s", Key: "k"}
	}
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, r := range list {
		work.Go(func() { _, _ = n.Await(ctx, r) }) // until the test is over
	}
	eventually(t, "each was read", func() bool { _, commands := n.readsSoFar(); return commands >= tenants })
	reads, _ := n.readsSoFar()
	begun := time.Now()
	await.Pass("nothing happens", 2*quietTime)
	more, _ := n.readsSoFar()
	if got, most := more-reads, 3*polls(begun); got > most {
		t.Errorf("%d reads, more than %d", got, most)
	}
	n.exec(t, `UPDATE pawl.command SET revision = revision + 1, status = 'succeeded', phase = NULL, run_at = NULL, code = 200, body = $1,
		finished_at = now(), expires_at = now() + interval '1 day'`, answer)
	work.Wait() // a poll tells all
}

func TestABurstOfChangesIsReadTogether(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	list := refs(300)
	n.begin(t, list...)
	watchers := n.watchAll(t, list)
	n.exec(t, "UPDATE pawl.command SET revision = 1")
	begun := time.Now()
	before, _ := n.readsSoFar()
	for _, r := range list {
		n.Changed([]transitions.Ref{r})
	}
	for _, w := range watchers {
		wantNext(t, w, 1)
	}
	after, _ := n.readsSoFar()
	if got, most := after-before, 3+int(time.Since(begun)/(5*time.Millisecond)); got > most {
		t.Errorf("%d reads for %d commands", got, len(list))
	}
}

func TestStopEndsEveryWait(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), false)
	n.begin(t, ref("k"))
	seen := n.watch(t, ref("k"))
	wantNext(t, seen, 0)
	done := make(chan error, 20)
	for i := range cap(done) {
		if i%2 == 0 {
			go func() { _, err := n.Await(t.Context(), ref("k")); done <- err }()
			continue
		}
		w := n.watch(t, ref("k"))
		wantNext(t, w, 0)
		go func() { _, err := w.Next(t.Context()); done <- err }()
	}
	n.Stop()
	n.Stop()
	for range cap(done) {
		wantCode(t, <-done, workflow.ShuttingDown)
	}
	_, err := seen.Next(t.Context())
	wantCode(t, err, workflow.ShuttingDown)
	_, err = n.watch(t, ref("k")).Next(t.Context())
	wantCode(t, err, workflow.ShuttingDown)
	_, err = n.Await(t.Context(), ref("k"))
	wantCode(t, err, workflow.ShuttingDown)
	n.Changed([]transitions.Ref{ref("k")}) // late news is nobody's trouble
	n.Ended(ref("k"), transitions.Receipt{})
}
