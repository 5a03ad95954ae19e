package pgtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// blockedLimit is how long a statement may take to reach the lock it is expected to wait for.
const blockedLimit = time.Minute

// WaitBlocked waits until a statement that contains the fragment waits for a lock in the pool's database, and returns
// the process number of its backend. An empty fragment stands for any statement. The test fails after a minute.
func WaitBlocked(t testing.TB, pool *pgxpool.Pool, fragment string) (pid uint32) {
	t.Helper()
	pid, err := waitBlocked(t.Context(), pool, blockedLimit, 1, `strpos(query, $1) > 0`, fragment)
	if err != nil {
		t.Fatalf("pgtest: a statement with %q: %v", fragment, err)
	}
	return pid
}

// WaitBlockedTimes waits until so many statements that contain the fragment wait for locks. The test fails after a minute.
func WaitBlockedTimes(t testing.TB, pool *pgxpool.Pool, fragment string, times int) {
	t.Helper()
	if _, err := waitBlocked(t.Context(), pool, blockedLimit, times, `strpos(query, $1) > 0`, fragment); err != nil {
		t.Fatalf("pgtest: %d statements with %q: %v", times, fragment, err)
	}
}

// WaitBlockedPID waits until the backend of that process number waits for a lock in the pool's database. The test fails
// after a minute.
func WaitBlockedPID(t testing.TB, pool *pgxpool.Pool, pid uint32) {
	t.Helper()
	if _, err := waitBlocked(t.Context(), pool, blockedLimit, 1, `pid = $1`, pid); err != nil {
		t.Fatalf("pgtest: backend %d: %v", pid, err)
	}
}

// waitBlocked asks until so many backends that meet the condition wait for locks, and returns one of them.
func waitBlocked[T string | uint32](ctx context.Context, pool *pgxpool.Pool, limit time.Duration, times int, condition string, arg T,
) (pid uint32, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sql := `SELECT count(*), coalesce(min(pid), 0) FROM pg_stat_activity WHERE datname = current_database()
		AND pid <> pg_backend_pid() AND wait_event_type = 'Lock' AND ` + condition
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var found int
		if err = pool.QueryRow(ctx, sql, arg).Scan(&found, &pid); err == nil && found >= times {
			return pid, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return 0, fmt.Errorf("did not see it wait for a lock: %w", err)
		}
	}
}
