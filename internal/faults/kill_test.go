package faults

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// killer ends the engine's connections at random, some at a time, until the
// returned function is called, which says how many it ended.
func killer(t testing.TB, pool *pgxpool.Pool, pause time.Duration) (ended func() int) {
	t.Helper()
	conn, err := pgx.ConnectConfig(bounded(t), pool.Config().ConnConfig.Copy())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		killed := 0
		defer func() { done <- killed }()
		defer conn.Close(context.WithoutCancel(ctx))
		for {
			select {
			case <-time.After(time.Duration(rand.Int64N(int64(2 * pause)))):
			case <-ctx.Done():
				return
			}
			var n int
			err := conn.QueryRow(context.WithoutCancel(ctx), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name LIKE 'pawl %' AND pid <> pg_backend_pid() AND random() < 0.5`).Scan(&n)
			if err != nil {
				t.Errorf("kill: %v", err)
				return
			}
			killed += n
		}
	}()
	return func() int {
		cancel()
		return <-done
	}
}
