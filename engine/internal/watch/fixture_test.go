package watch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine/internal/watch"
	"github.com/pawlhq/pawl/internal/kernel/clock"
	"github.com/pawlhq/pawl/internal/kernel/notify"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/internal/testkit/tables"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestMain(m *testing.M) { tables.Main(m) }

// limit is how long a test waits for what must come.
const limit = await.Patience

const tenant = "acme corp"

func ref(key string) transitions.Ref {
	return transitions.Ref{Tenant: tenant, Scope: "order:1", Key: key}
}

func refs(n int) []transitions.Ref {
	list := make([]transitions.Ref, n)
	for i := range list {
		list[i] = ref(fmt.Sprintf("k-%d", i))
	}
	return list
}

// node is a hub and an exchange with a pool of their own.
type node struct {
	*watch.Hub
	exchange *notify.Exchange
	pool     *pgxpool.Pool
	broken   atomic.Bool  // reads fail
	horizon  atomic.Int64 // how far its clock has run ahead

	mu    sync.Mutex
	reads []int // how many commands each read was of
}

// startNode starts a node that hears of others only by polling, if quiet.
func startNode(t testing.TB, url string, quiet bool) *node {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.MaxConns = 8
	n, direct := &node{}, pgtest.Direct(t, url)
	n.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(n.pool.Close)
	log := slog.New(slog.DiscardHandler)
	n.exchange = notify.New(notify.Config{Pool: n.pool, Channel: "pawl", Log: log, Off: quiet,
		Connect: func(ctx context.Context, name string) (*pgx.Conn, error) {
			c, err := pgx.ParseConfig(direct)
			if err != nil {
				return nil, err
			}
			c.RuntimeParams["application_name"] = name
			return pgx.ConnectConfig(ctx, c)
		}})
	n.Hub = watch.New(watch.Config{Read: n.read, Announce: n.exchange.Changed, Log: log,
		Clock: clock.New(func() time.Time { return time.Now().Add(time.Duration(n.horizon.Load())) })})
	n.Start()
	t.Cleanup(n.Stop)
	n.exchange.Start(notify.Listener{Changed: n.Heard})
	t.Cleanup(n.exchange.Stop)
	return n
}

// read is the engine's, with the columns that matter here.
func (n *node) read(ctx context.Context, list []transitions.Ref) ([]*transitions.Record, error) {
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.reads = append(n.reads, len(list))
	}()
	if n.broken.Load() {
		return nil, errors.New("it is gone")
	}
	var tenants, scopes, keys []string
	for _, r := range list {
		tenants, scopes, keys = append(tenants, r.Tenant), append(scopes, r.Scope), append(keys, r.Key)
	}
	found, err := n.pool.Query(ctx, `SELECT u.ord, c.scope, c.key, c.status, c.revision, coalesce(c.phase, ''), c.instance, coalesce(c.code,
		0),
			coalesce(c.body, ''), c.expires_at
		FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u(tenant, scope, key, ord)
		JOIN pawl.command c ON c.tenant = u.tenant AND c.scope = u.scope AND c.key = u.key`, tenants, scopes, keys)
	if err != nil {
		return nil, err
	}
	records := make([]*transitions.Record, len(list))
	_, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (none struct{}, err error) {
		var r transitions.Record
		var ord int
		var body string
		var expires *time.Time
		err = row.Scan(&ord, &r.Scope, &r.Key, &r.Status, &r.Revision, &r.Phase, &r.Instance, &r.Code, &body, &expires)
		if expires != nil {
			r.ExpiresAt = *expires
		}
		r.Body = []byte(body)
		if err == nil {
			records[ord-1] = &r
		}
		return none, err
	})
	return records, err
}

// readsSoFar is how many reads are done, and of how many commands together.
func (n *node) readsSoFar() (reads, commands int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, size := range n.reads {
		commands += size
	}
	return len(n.reads), commands
}

// begin puts commands in flight, at revision 0.
func (n *node) begin(t testing.TB, list ...transitions.Ref) {
	t.Helper()
	for _, r := range list {
		n.exec(t, `INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
				phase, attempt, failures, revision, run_at, request, updated_at)
			VALUES ($1, $2, $3, decode(repeat('00', 32), 'hex'), 'pending', 'order', 'pay', $4, 'ann', now(), 'working', 0, 0, 0, now(), '{}',
				now())`, r.Tenant, r.Scope, r.Key, uuid.New())
	}
}

// touch changes a command behind the node's back.
func (n *node) touch(t testing.TB, r transitions.Ref) {
	t.Helper()
	n.exec(t, `UPDATE pawl.command SET revision = revision + 1 WHERE tenant = $1 AND scope = $2 AND key = $3`, r.Tenant, r.Scope, r.Key)
}

// change changes a command, as a worker of the node does.
func (n *node) change(t testing.TB, r transitions.Ref) {
	t.Helper()
	n.touch(t, r)
	n.Changed([]transitions.Ref{r})
}

const answer = `{"state":"paid"}`

// finish ends a command behind the node's back.
func (n *node) finish(t testing.TB, r transitions.Ref) {
	t.Helper()
	n.exec(t, `UPDATE pawl.command SET revision = revision + 1, status = 'succeeded', phase = NULL, run_at = NULL, code = 200, body = $4,
			finished_at = now(), expires_at = now() + interval '1 day' WHERE tenant = $1 AND scope = $2 AND key = $3`, r.Tenant, r.Scope, r.Key,
		answer)
}

func (n *node) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := n.pool.Exec(context.Background(), sql, args...)
	assert.NoError(t, err)
}

// watch watches a command until the test ends.
func (n *node) watch(t testing.TB, r transitions.Ref) transitions.Watcher {
	t.Helper()
	w := n.Watch(r)
	t.Cleanup(w.Close)
	return w
}

// watchAll watches commands that have not changed yet, and reads their status.
func (n *node) watchAll(t testing.TB, list []transitions.Ref) []transitions.Watcher {
	t.Helper()
	watchers := make([]transitions.Watcher, len(list))
	for i, r := range list {
		watchers[i] = n.watch(t, r)
	}
	for _, w := range watchers {
		wantNext(t, w, 0)
	}
	return watchers
}

// mustNext is the next record of a watcher, in time.
func mustNext(t testing.TB, w transitions.Watcher) transitions.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := w.Next(ctx)
	require.NoError(t, err)
	return r
}

// wantNext wants the next record to be of a revision.
func wantNext(t testing.TB, w transitions.Watcher, revision int) transitions.Record {
	t.Helper()
	r := mustNext(t, w)
	require.Equal(t, revision, r.Revision, "revision")
	return r
}

func wantCode(t testing.TB, err error, want workflow.Code) {
	t.Helper()
	assert.Equal(t, want, workflow.CodeOf(err), err)
}

// listening waits until so many nodes listen. A LISTEN is done when its
// connection waits for the next statement.
func (n *node) listening(t testing.TB, nodes int) {
	t.Helper()
	eventually(t, "every node listens", func() bool {
		var count int
		require.NoError(t, n.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = 'pawl listener' AND state = 'idle' AND query LIKE 'LISTEN%'`).Scan(&count))
		return count == nodes
	})
}

var eventually = await.Eventually
