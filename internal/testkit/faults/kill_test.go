package faults

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// killer ends the engine's connections at random, some at a time, each time that
// about so many more events are done: on a busy machine as often in the work as on
// a quick one. The function stop says how many it ended.
func killer(t testing.TB, pool *pgxpool.Pool, every int64) (progress func(events int64), stop func() int) {
	t.Helper()
	conn, err := pgx.ConnectConfig(bounded(t), pool.Config().ConnConfig.Copy())
	require.NoError(t, err)
	due, done := make(chan struct{}, 1), make(chan int, 1)
	go func() {
		killed := 0
		defer func() { done <- killed }()
		defer conn.Close(context.Background())
		for range due {
			var n int
			err := conn.QueryRow(bounded(t), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name LIKE 'pawl %' AND pid <> pg_backend_pid() AND random() < 0.5`).Scan(&n)
			if err != nil {
				t.Errorf("kill: %v", err)
				return
			}
			killed += n
		}
	}()
	var next atomic.Int64
	progress = func(events int64) {
		if n := next.Load(); events < n || !next.CompareAndSwap(n, events+rand.Int64N(2*every)) {
			return
		}
		select {
		case due <- struct{}{}:
		default:
		}
	}
	return progress, func() int {
		close(due)
		return <-done
	}
}
