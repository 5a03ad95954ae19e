package localpg

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lingers bounds how long connections of a program that has ended remain visible.
const lingers = 2 * time.Second

// refresh compares the running server with the binaries: after an upgrade of the package it may fail to load their libraries. It ends a
// server that differs and is idle, and reports false. A server that is in use keeps running; if it cannot load its libraries, the error
// has the remedy.
func (s *Server) refresh(ctx context.Context, pm postmaster, bin binaries, log logger) (running bool, err error) {
	advice := fmt.Sprintf("stop the programs that use it, or end it with kill -INT %d, and start again", pm.pid)
	conn, err := s.connect(ctx)
	if err != nil {
		return false, fmt.Errorf("%w; if PostgreSQL was upgraded: %s", err, advice)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var version string
	if err := conn.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1)`).Scan(&version); err != nil {
		return false, err
	}
	_, broken := conn.Exec(ctx, `DO LANGUAGE plpgsql $$BEGIN END$$`)
	if _, refused := errors.AsType[*pgconn.PgError](broken); broken != nil && !refused {
		return false, broken
	}
	why := ""
	switch {
	case version != bin.version:
		why = fmt.Sprintf("it is version %s, and the programs in %s are version %s", version, bin.dir, bin.version)
	case pm.replaced():
		why = "its programs have been replaced since it started"
	case broken != nil:
		why = "it cannot load its libraries"
	default:
		return true, nil
	}
	idle, err := s.endIdle(ctx, conn, pm)
	switch {
	case err != nil:
		return false, err
	case idle:
		log("restarting the PostgreSQL in %s: %s", s.home, why)
		return false, nil
	case broken != nil:
		return false, fmt.Errorf("the PostgreSQL in %s is in use and cannot load its libraries (%w); %s: %s", s.home, broken, why, advice)
	}
	log("the PostgreSQL in %s is in use and is not restarted, although %s: %s", s.home, why, advice)
	return true, nil
}

// endIdle ends the server if it has no other client and no other program has a lock for it. The home's lock excludes new ones.
func (s *Server) endIdle(ctx context.Context, conn *pgx.Conn, pm postmaster) (idle bool, err error) {
	idle = s.users.try(syscall.LOCK_EX)
	if limit := time.Now().Add(lingers); idle {
		err = poll(ctx, "connections to end", func() (bool, error) {
			err := conn.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity
				WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())`).Scan(&idle)
			return idle || time.Now().After(limit), err
		})
	}
	if err == nil && idle {
		err = pm.end(ctx, syscall.SIGINT)
	}
	return idle, errors.Join(err, s.users.wait(ctx, syscall.LOCK_SH)) // the change may have lost the lock
}
