package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestWatch_InitialAndChanges(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.begin(t, ref("k"))
	w := n.watch(t, ref("k"))
	r := wantNext(t, w, 0)
	assert.Truef(t, r.Status == transitions.Pending && r.InFlight() && r.Key == "k", "got %+v", r)
	for revision := 1; revision <= 20; revision++ {
		n.change(t, ref("k"))
		wantNext(t, w, revision)
	}
	n.finish(t, ref("k"))
	n.Changed([]transitions.Ref{ref("k")})
	r = wantNext(t, w, 21)
	assert.Truef(t, r.Status == transitions.Succeeded && !r.InFlight() && string(r.Body) == answer, "got %+v", r)
	// It changes no more, so that there is nothing to come.
	n.Changed([]transitions.Ref{ref("k")})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := w.Next(ctx)
	assert.ErrorIsf(t, err, context.DeadlineExceeded, "%+v", r)
}

// seen changes the command on one node, again and again, and says how long a
// watcher on another took to see each, until it was enough.
func seen(t *testing.T, here, there *node, enough func(delays []time.Duration, since time.Time) bool) []time.Duration {
	t.Helper()
	w := there.watch(t, ref("k"))
	wantNext(t, w, 0)
	first := time.Now()
	var list []time.Duration
	for !enough(list, first) {
		require.Truef(t, time.Since(first) <= limit, "changes were seen after %s", list)
		begun := time.Now()
		here.change(t, ref("k"))
		wantNext(t, w, len(list)+1)
		list = append(list, time.Since(begun))
	}
	return list
}

func TestAChangeWhoseHintIsLostIsSeenByThePoll(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := startNode(t, url, true), startNode(t, url, false) // here sends nothing
	here.begin(t, ref("k"), ref("other"))
	w := there.watch(t, ref("k"))
	wantNext(t, w, 0)
	for revision := 1; revision <= 2; revision++ {
		there.Heard([]uint64{42}) // of something else
		here.change(t, ref("k"))
		wantNext(t, w, revision)
	}
}

// Both nodes watch while workers on both change the commands: every watcher sees revisions grow, none twice, and the end.
func TestWatch_TwoNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	nodes := []*node{startNode(t, url, false), startNode(t, url, false)}
	list := refs(5)
	nodes[0].begin(t, list...)
	nodes[0].listening(t, 2)
	const changes = 60
	var watching, changing sync.WaitGroup
	for _, n := range nodes {
		for _, r := range list {
			for range 4 {
				w := n.watch(t, r)
				watching.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					for last := -1; ; {
						got, err := w.Next(ctx)
						switch {
						case err != nil:
							t.Errorf("%s after revision %d: %v", r.Key, last, err)
							return
						case got.Key != r.Key || got.Revision <= last:
							t.Errorf("%s: revision %d of %s after %d", r.Key, got.Revision, got.Key, last)
							return
						case !got.InFlight():
							assert.Equalf(t, changes+1, got.Revision, "%s ended at revision", r.Key)
							return
						}
						last = got.Revision
					}
				})
			}
		}
	}
	for i, r := range list {
		changing.Go(func() {
			n := nodes[i%2]
			for range changes {
				n.change(t, r)
			}
			n.finish(t, r)
			n.Changed([]transitions.Ref{r})
		})
	}
	changing.Wait()
	watching.Wait()
}

func TestNextEndsWithItsContext(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.begin(t, ref("k"))
	w := n.watch(t, ref("k"))
	wantNext(t, w, 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := w.Next(ctx); done <- err }()
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)
	n.change(t, ref("k"))
	wantNext(t, w, 1) // it is as good as before
}

func TestWatch_NotFoundOrExpired(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	w := n.watch(t, ref("k"))
	for range 2 {
		_, err := w.Next(t.Context())
		wantCode(t, err, workflow.CommandNotFound)
	}
	n.begin(t, ref("k"), ref("old"))
	n.finish(t, ref("old"))
	n.horizon.Store(int64(48 * time.Hour))
	_, err := n.watch(t, ref("old")).Next(t.Context())
	wantCode(t, err, workflow.KeyExpired)
	n.Changed([]transitions.Ref{ref("k")})
	eventually(t, "the new command is seen by who waited for it", func() bool {
		r, err := w.Next(t.Context())
		return err == nil && r.Revision == 0
	})
}

func TestWatch_DatabaseOutage(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t), true)
	n.begin(t, ref("k"))
	old := n.watch(t, ref("k"))
	wantNext(t, old, 0)
	waiting := make(chan error, 1)
	go func() {
		r, err := old.Next(t.Context())
		if err == nil && r.Revision != 1 {
			err = fmt.Errorf("got revision %d", r.Revision)
		}
		waiting <- err
	}()
	n.broken.Store(true)
	fresh := n.watch(t, ref("k"))
	for range 2 {
		_, err := fresh.Next(t.Context())
		wantCode(t, err, workflow.Unavailable)
	}
	n.touch(t, ref("k"))
	n.broken.Store(false)
	eventually(t, "it is back for who begins", func() bool {
		r, err := fresh.Next(t.Context())
		return err == nil && r.Revision == 1
	})
	assert.NoError(t, <-waiting)
}
