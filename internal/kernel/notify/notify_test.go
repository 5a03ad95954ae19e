package notify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/notify"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestExchange_AllTopicsReachOtherNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b, c := startNode(t, url), startNode(t, url), startNode(t, url)
	listening(t, a, b, c)
	a.Head("acme corp", 7)
	a.Head("acme corp", 5) // out of order
	a.Head("", 3)
	a.Changed([]uint64{1, 1 << 63})
	a.Due()
	a.Sinks()
	a.Begins()
	for name, n := range map[string]*node{"b": b, "c": c} {
		eventually(t, name+" receives all", func() bool {
			return n.received(func() bool {
				return n.heads["acme corp"] == 7 && n.heads[""] == 3 && n.commands[1] == 1 && n.commands[1<<63] == 1 && n.due == 1 && n.sinks == 1 &&
					n.begins == 1
			})
		})
	}
	// Notifications arrive in order: when a receives that of b, its own have arrived.
	b.Due()
	eventually(t, "a receives", func() bool { return a.received(func() bool { return a.due > 0 }) })
	assert.Truef(t, a.received(func() bool { return a.due == 1 && len(a.heads) == 0 && len(a.commands) == 0 }),
		"a receives its own: %d, %v, %v", a.due, a.heads, a.commands)
}

func TestNotificationsAreBatched(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := startNode(t, url), startNode(t, url)
	listening(t, here, there)
	const rounds, each = 300, 100
	begun := time.Now()
	for i := range rounds {
		here.Head("acme", int64(i+1))
		hashes := make([]uint64, each)
		for k := range hashes {
			hashes[k] = uint64(i*each + k + 1)
		}
		here.Changed(hashes)
		here.Changed(hashes[:1]) // again
		here.Due()
	}
	many := make([]uint64, 1000) // at once, for more than one payload
	for i := range many {
		many[i] = uint64(i + 1)
	}
	here.Changed(many)
	took := time.Since(begun)
	eventually(t, "all arrives", func() bool {
		return there.received(func() bool { return there.heads["acme"] == rounds && len(there.commands) == rounds*each })
	})
	// One at once, then at most one in 20 ms.
	if got, most := here.count("pg_notify"), 2+int(took/(20*time.Millisecond)); got > most {
		t.Errorf("%d statements in %s", got, took)
	}
	here.mu.Lock()
	defer here.mu.Unlock()
	assert.Truef(t, here.longest < 8000 && here.longest >= 7000, "the longest payload has %d bytes", here.longest)
}

func TestExchange_Off(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	quiet, loud := startNode(t, url, off), startNode(t, url)
	eventually(t, "the other listens", func() bool { return loud.listeners(t) == 1 })
	before := quiet.count("all")
	quiet.Head("acme", 7)
	quiet.Changed([]uint64{1})
	quiet.Due()
	quiet.Stop()
	got := quiet.count("all") - before
	assert.Equal(t, 0, got, "queries")
}

func TestListenerReconnects(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := startNode(t, url, off), startNode(t, url)
	listening(t, there)
	for cut := 1; cut <= 3; cut++ {
		_, err := here.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'pawl listener' AND pid <> pg_backend_pid()`)
		require.NoError(t, err)
		eventually(t, "it listens again", func() bool { return there.count("LISTEN") > cut && there.listeners(t) == 1 })
	}
	other := startNode(t, url)
	other.Due()
	eventually(t, "it receives again", func() bool { return there.received(func() bool { return there.due == 1 }) })
}

func TestListenerBacksOff(t *testing.T) {
	t.Parallel()
	tries := make(chan time.Time, 100)
	startNode(t, pgtest.URL(t), func(c *notify.Config) {
		c.Connect = func(context.Context, string) (*pgx.Conn, error) {
			tries <- time.Now()
			return nil, errors.New("it is gone")
		}
	})
	first, second, third := <-tries, <-tries, <-tries
	assert.Truef(t, second.Sub(first) >= 100*time.Millisecond && third.Sub(second) >= 100*time.Millisecond,
		"tries after %s and %s", second.Sub(first), third.Sub(second))
}

func TestStopSendsPending(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := startNode(t, url), startNode(t, url)
	listening(t, here, there)
	here.Head("acme", 1)
	here.Due()
	here.Stop()
	here.Stop()
	eventually(t, "the last notifications arrive", func() bool {
		return there.received(func() bool { return there.heads["acme"] == 1 && there.due == 1 })
	})
	here.Due() // no-op
}

func TestExchange_IdleRunsNoQueries(t *testing.T) {
	t.Parallel()
	n := startNode(t, pgtest.URL(t))
	eventually(t, "it listens", func() bool { return n.count("LISTEN") == 1 })
	before := n.count("all")
	await.Pass("nothing happens", 500*time.Millisecond)
	got := n.count("all") - before
	assert.Equal(t, 0, got, "queries")
}

func TestListenerIgnoresInvalidPayloads(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	n, other := startNode(t, url), startNode(t, url)
	listening(t, n, other)
	for _, payload := range []string{"", "x", "x y", "x h", "x h y", "x h 12", "x h 99999999999999999999 acme", "x c", "x c !", "x c AAAA",
		"x d y", "x s y", "x e", "12 acme"} {
		_, err := n.pool.Exec(t.Context(), "SELECT pg_notify('pawl', $1)", payload)
		require.NoError(t, err)
	}
	other.Due()
	eventually(t, "a later notification arrives", func() bool { return n.received(func() bool { return n.due == 1 }) })
	assert.Truef(t, n.received(func() bool { return len(n.heads) == 0 && len(n.commands) == 0 }), "heard %v, %v", n.heads, n.commands)
}
