// Package pooler detects a pooler in transaction mode, such as PgBouncer, between a program and its
// database. With such a pooler, each transaction may use another session: named prepared
// statements, SET, LISTEN and session locks do not stay with a connection and affect others.
//
// The program must choose a suitable mode of its driver: default_query_exec_mode=exec in the connection string. This package reports a
// missing setting at the start, instead of intermittent errors later.
package pooler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

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

// settings are required in every session, whatever the server, the database or the role sets: pgx parses times in ISO format and text
// in UTF-8, and quotes literals as in standard SQL. PgBouncer passes exactly these parameters on.
var settings = []struct{ name, value string }{
	{"datestyle", "ISO"}, {"client_encoding", "UTF8"}, {"standard_conforming_strings", "on"},
}

// Configure adds the settings to the parameters of new connections.
func Configure(c *pgx.ConnConfig) {
	for _, s := range settings {
		c.RuntimeParams[s.name] = s.value
	}
}

// checkSettings rejects a database that is not in UTF-8, and connections without the settings. It takes one round trip.
func checkSettings(ctx context.Context, pool *pgxpool.Pool) error {
	var database, encoding string
	found := make([]string, len(settings))
	columns, into := []string{"current_database()", "current_setting('server_encoding')"}, []any{&database, &encoding}
	for i, s := range settings {
		columns = append(columns, "current_setting('"+s.name+"')")
		into = append(into, &found[i])
	}
	err := pool.QueryRow(ctx, "SELECT "+strings.Join(columns, ", "), pgx.QueryExecModeExec).Scan(into...)
	if err != nil {
		return fmt.Errorf("look at the settings of the database: %w", err)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database %q has the encoding %s, and Pawl needs UTF8: create one with "+
			"CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", database, encoding)
	}
	for i, s := range settings {
		if value, _, _ := strings.Cut(found[i], ","); value != s.value {
			return fmt.Errorf("connections to the database %q have %s = %s, and Pawl needs %s: add %s=%s to the connection string",
				database, s.name, found[i], s.value, s.name, s.value)
		}
	}
	return nil
}
