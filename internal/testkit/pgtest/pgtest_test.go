package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachTestGetsAnEmptyDatabaseThatEndsWithIt(t *testing.T) {
	t.Parallel()
	var names []string
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			pool := Pool(t)
			if _, err := pool.Exec(t.Context(), `CREATE TABLE only_here (id int)`); err != nil {
				t.Fatal(err)
			}
			names = append(names, pool.Config().ConnConfig.Database)
		})
	}
	s, err := connect()
	require.NoError(t, err)
	for _, name := range names {
		assert.Falsef(t, exists(t, s, name), "%s is still there after its test", name)
	}
}

func TestDatabasesOfParallelTestsDiffer(t *testing.T) {
	t.Parallel()
	const parallel = 8
	urls := make(chan string, parallel)
	t.Run("group", func(t *testing.T) {
		for range parallel {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				urls <- URL(t)
			})
		}
	})
	close(urls)
	seen := map[string]bool{}
	for url := range urls {
		seen[url] = true
	}
	assert.Len(t, seen, parallel, "databases for tests")
}

func TestAPackageWithoutMainIsTold(t *testing.T) {
	shared.mu.Lock()
	shared.inMain = false
	shared.mu.Unlock()
	_, err := connect()
	shared.mu.Lock()
	shared.inMain = true
	shared.mu.Unlock()
	assert.ErrorContains(t, err, "pgtest.Main(m)", "want what to write")
}

func TestWaitBlocked(t *testing.T) {
	t.Parallel()
	pool := DirectPool(t)
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `CREATE TABLE spot (id int PRIMARY KEY); INSERT INTO spot VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	holder, err := pool.Begin(ctx)
	require.NoError(t, err)
	_, err = holder.Exec(ctx, `SELECT FROM spot FOR UPDATE`)
	require.NoError(t, err)
	waiter, err := pool.Acquire(ctx)
	require.NoError(t, err)
	defer waiter.Release()
	pid := waiter.Conn().PgConn().PID()
	done := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(ctx, `DELETE FROM spot`)
		done <- err
	}()
	assert.Equal(t, pid, WaitBlocked(t, pool, "DELETE FROM spot"), "backend waits")
	WaitBlocked(t, pool, "")
	WaitBlockedPID(t, pool, pid)
	expectNone(t, pool, `strpos(query, $1) > 0`, "UPDATE spot")
	require.NoError(t, holder.Rollback(ctx))
	require.NoError(t, <-done)
	expectNone(t, pool, `pid = $1`, pid)
}

func expectNone[T string | uint32](t *testing.T, pool *pgxpool.Pool, condition string, arg T) {
	t.Helper()
	pid, err := waitBlocked(t.Context(), pool, 50*time.Millisecond, 1, condition, arg)
	assert.ErrorIsf(t, err, context.DeadlineExceeded, "%s with %v: backend %d; want none in time", condition, arg, pid)
}
