package pgtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
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
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if exists(t, s, name) {
			t.Errorf("%s is still there after its test", name)
		}
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
	if len(seen) != parallel {
		t.Errorf("%d databases for %d tests", len(seen), parallel)
	}
}

func TestAPackageWithoutMainIsTold(t *testing.T) {
	shared.mu.Lock()
	shared.inMain = false
	shared.mu.Unlock()
	_, err := connect()
	shared.mu.Lock()
	shared.inMain = true
	shared.mu.Unlock()
	if err == nil || !strings.Contains(err.Error(), "pgtest.Main(m)") {
		t.Errorf("got %v, want what to write", err)
	}
}

func TestWaitBlockedSeesAStatementThatWaitsForALock(t *testing.T) {
	t.Parallel()
	pool := DirectPool(t)
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `CREATE TABLE spot (id int PRIMARY KEY); INSERT INTO spot VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	holder, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(ctx, `SELECT FROM spot FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	waiter, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Release()
	pid := waiter.Conn().PgConn().PID()
	done := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(ctx, `DELETE FROM spot`)
		done <- err
	}()
	if got := WaitBlocked(t, pool, "DELETE FROM spot"); got != pid {
		t.Errorf("backend %d waits, want %d", got, pid)
	}
	WaitBlocked(t, pool, "")
	WaitBlockedPID(t, pool, pid)
	expectNone(t, pool, `strpos(query, $1) > 0`, "UPDATE spot")
	if err := holder.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	expectNone(t, pool, `pid = $1`, pid)
}

func expectNone[T string | uint32](t *testing.T, pool *pgxpool.Pool, condition string, arg T) {
	t.Helper()
	pid, err := waitBlocked(t.Context(), pool, 50*time.Millisecond, 1, condition, arg)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s with %v: backend %d, %v; want none in time", condition, arg, pid, err)
	}
}
