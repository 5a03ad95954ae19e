package pooler

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPrepares means that a pooler in transaction mode is between the program and
// its database, and that the driver would prepare statements through it.
var ErrPrepares = errors.New("a pooler in transaction mode is between this program and its database, where prepared statements fail: " +
	"add default_query_exec_mode=exec to the connection string")

// ErrShared means that a pooler in transaction mode is between the program and its
// database, so that a connection has no session for itself.
var ErrShared = errors.New("a pooler in transaction mode is between this program and its database")

// Expected reports whether connections with this configuration keep nothing in
// their session, as a pooler wants it.
func Expected(c *pgx.ConnConfig) bool {
	switch c.DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheDescribe:
		return true
	}
	return false
}

// Check looks whether a pooler in transaction mode is there although it is not
// expected, and whether the session has the settings that the protocol needs. Without a pooler that is two round trips.
//
// Errors: ErrPrepares; a setting or an encoding that has to be another; those of the database.
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

// CheckSession looks whether a connection has a session of the database for
// itself. Without a pooler that is one round trip.
//
// Errors: ErrShared; those of the database.
func CheckSession(ctx context.Context, one *pgx.Conn) error {
	before, err := backend(ctx, one)
	if err != nil || before == one.PgConn().PID() {
		return err
	}
	// Somebody answers for the backend. In session mode this connection keeps it
	// for itself. In transaction mode it is free now, and another connection gets
	// it; or somebody else was quicker, and then this one gets another.
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

// backend is the process that runs the connection's statements just now.
func backend(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return 0, fmt.Errorf("look for a pooler: %w", err)
	}
	return pid, nil
}
