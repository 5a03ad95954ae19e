package notify_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/notify"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// node is an exchange with its own pool. It counts its queries and records received notifications.
type node struct {
	*notify.Exchange
	pool *pgxpool.Pool

	mu       sync.Mutex
	queries  map[string]int
	longest  int // payload
	heads    map[string]int64
	commands map[uint64]int
	due      int
	sinks    int
	begins   int
}

func (n *node) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queries["all"]++
	for _, kind := range []string{"LISTEN", "pg_notify"} {
		if strings.Contains(data.SQL, kind) && !strings.Contains(data.SQL, "pg_stat_activity") {
			n.queries[kind]++
		}
	}
	for _, arg := range data.Args {
		if payloads, is := arg.([]string); is {
			for _, p := range payloads {
				n.longest = max(n.longest, len(p))
			}
		}
	}
	return ctx
}

func (n *node) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (n *node) count(kind string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.queries[kind]
}

// received evaluates a condition on the received notifications.
func (n *node) received(condition func() bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return condition()
}

// startNode starts an exchange; change may alter its configuration.
func startNode(t testing.TB, url string, change ...func(*notify.Config)) *node {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	direct := pgtest.Direct(t, url)
	n := &node{queries: map[string]int{}, heads: map[string]int64{}, commands: map[uint64]int{}}
	config.ConnConfig.Tracer = n
	config.MaxConns = 4
	n.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(n.pool.Close)
	c := notify.Config{Pool: n.pool, Channel: "pawl", Log: slog.New(slog.DiscardHandler),
		Connect: func(ctx context.Context, name string) (*pgx.Conn, error) {
			c, err := pgx.ParseConfig(direct)
			if err != nil {
				return nil, err
			}
			c.Tracer, c.RuntimeParams["application_name"] = n, name
			return pgx.ConnectConfig(ctx, c)
		}}
	for _, alter := range change {
		alter(&c)
	}
	n.Exchange = notify.New(c)
	locked := func(note func()) {
		n.mu.Lock()
		defer n.mu.Unlock()
		note()
	}
	n.Start(notify.Listener{
		Head: func(tenant string, head int64) { locked(func() { n.heads[tenant] = max(n.heads[tenant], head) }) },
		Changed: func(commands []uint64) {
			locked(func() {
				for _, c := range commands {
					n.commands[c]++
				}
			})
		},
		Due:    func() { locked(func() { n.due++ }) },
		Sinks:  func() { locked(func() { n.sinks++ }) },
		Begins: func() { locked(func() { n.begins++ }) },
	})
	t.Cleanup(n.Stop)
	return n
}

// off switches an exchange off.
func off(c *notify.Config) { c.Off = true }

// listening waits until nodes listen.
func listening(t testing.TB, nodes ...*node) {
	t.Helper()
	eventually(t, "every node listens", func() bool {
		return !slices.ContainsFunc(nodes, func(n *node) bool { return n.listeners(t) < len(nodes) })
	})
}

// listeners counts the listening connections of the node's database. A LISTEN is complete when its connection is idle.
func (n *node) listeners(t testing.TB) (count int) {
	t.Helper()
	require.NoError(t, n.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND application_name = 'pawl listener' AND state = 'idle' AND query LIKE 'LISTEN%'`).Scan(&count))
	return count
}

var eventually = await.Eventually
