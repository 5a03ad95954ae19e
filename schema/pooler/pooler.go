package pooler

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPrepares reports a pooler in transaction mode between the program and its database while the driver prepares statements.
var ErrPrepares = errors.New("a pooler in transaction mode is between this program and its database, where prepared statements fail: " +
	"add default_query_exec_mode=exec to the connection string")

// ErrShared reports a pooler in transaction mode, so that a connection has no session of its own.
var ErrShared = errors.New("a pooler in transaction mode is between this program and its database")

// Expected reports whether connections with this configuration keep nothing in their session, as required by a pooler.
func Expected(c *pgx.ConnConfig) bool {
	switch c.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheDescribe:
		return true
	}
	return false
}

// Check detects an unexpected pooler in transaction mode, and checks the settings of the session.
// Without a pooler it takes two round trips.
//
// Errors: ErrPrepares; a wrong setting or encoding; those of the database.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	if err := checkSettings(ctx, pool); err != nil {
		return err
	}
	if Expected(pool.Config().ConnConfig) {
		return nil
	}
	return pool.AcquireFunc(ctx, func(held *pgxpool.Conn) error {
		err := CheckSession(ctx, held.Conn())
		if errors.Is(err, ErrShared) {
			return ErrPrepares
		}
		return err
	})
}

// CheckSession checks that a connection has its own session of the database. Without a pooler it takes one round trip.
//
// Errors: ErrShared; those of the database.
func CheckSession(ctx context.Context, one *pgx.Conn) error {
	before, err := backend(ctx, one)
	if err != nil || before == one.PgConn().PID() {
		return err
	}
	// A pooler reports its own backend key. In session mode this connection keeps its backend. In transaction mode the backend is free
	// now: the second connection gets it, or a third party does and this connection gets another.
	two, err := pgx.ConnectConfig(ctx, one.Config())
	if err != nil {
		return fmt.Errorf("look for a pooler: %w", err)
	}
	defer func() { _ = two.Close(ctx) }() // nothing was done on it
	if _, err := two.Exec(ctx, "BEGIN"); err != nil {
		return fmt.Errorf("look for a pooler: %w", err)
	}
	theirs, err := backend(ctx, two)
	if err != nil || theirs == before {
		return cmp.Or(err, ErrShared)
	}
	if after, err := backend(ctx, one); err != nil || after != before {
		return cmp.Or(err, ErrShared)
	}
	return nil
}

// backend returns the process that currently executes the connection's statements.
func backend(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return 0, fmt.Errorf("look for a pooler: %w", err)
	}
	return pid, nil
}
