package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A server survives a program that is killed. If the package of PostgreSQL is upgraded meanwhile, the server still runs the old
// program and loads the libraries of the new one, which fails. So a server that is found running is compared with the binaries, and
// restarted on its data if no other program uses it.

// state is what a running server reports about itself.
type state struct {
	version string
	broken  error // why it cannot load its libraries, or nil
}

// refresh compares the running server with the binaries. It ends a server that differs and is idle, and reports false. A server
// that is in use keeps running; if it cannot load its libraries, the error says what to do.
func (s *Server) refresh(ctx context.Context, bin binaries, log logger) (running bool, err error) {
	pm, ok := runningIn(s.data())
	if !ok {
		return false, nil
	}
	advice := fmt.Sprintf("stop the programs that use it, or end it with kill -INT %d, and start again", pm.pid)
	replaced := pm.replaced()
	now, err := s.state(ctx)
	if err != nil {
		if replaced {
			err = fmt.Errorf("%w; its programs have been replaced since it started: %s", err, advice)
		}
		return false, err
	}
	var why string
	switch {
	case now.version != bin.version:
		why = fmt.Sprintf("it is version %s, and the programs in %s are version %s", now.version, bin.dir, bin.version)
	case replaced:
		why = "its programs have been replaced since it started"
	case now.broken != nil:
		why = "it cannot load its libraries"
	default:
		return true, nil
	}
	idle, err := s.endIdle(ctx, pm)
	switch {
	case err != nil:
		return false, err
	case idle:
		log("restarting the PostgreSQL in %s: %s", s.home, why)
		return false, nil
	case now.broken != nil:
		return false, fmt.Errorf("the PostgreSQL in %s is in use and cannot load its libraries (%w); %s: %s", s.home, now.broken, why, advice)
	}
	log("the PostgreSQL in %s is in use and is not restarted, although %s: %s", s.home, why, advice)
	return true, nil
}

// endIdle ends the server if it has no client and no other program has a lock for it. The home is locked, so no program can begin
// to use it meanwhile.
func (s *Server) endIdle(ctx context.Context, pm postmaster) (ended bool, err error) {
	alone, err := s.users.try(syscall.LOCK_EX)
	if err == nil && alone {
		ended, err = s.unused(ctx)
	}
	if ended {
		err = pm.end(ctx, syscall.SIGINT)
	}
	return ended, errors.Join(err, s.users.wait(ctx, syscall.LOCK_SH)) // to change the lock may have lost it
}

// lingers is how long connections of a program that has ended may be seen after it.
const lingers = 2 * time.Second

// unused reports whether the server has no connection other than ours.
func (s *Server) unused(ctx context.Context) (unused bool, err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	limit := time.Now().Add(lingers)
	err = poll(ctx, "connections to end", func() (bool, error) {
		err := conn.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())`).Scan(&unused)
		return unused || time.Now().After(limit), err
	})
	if err != nil {
		return false, fmt.Errorf("ask the server in %s who uses it: %w", s.home, err)
	}
	return unused, nil
}

// state asks the running server for its version, and whether it can load a library.
func (s *Server) state(ctx context.Context) (now state, err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return now, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if err := conn.QueryRow(ctx, `SHOW server_version`).Scan(&now.version); err != nil {
		return now, fmt.Errorf("ask the server in %s for its version: %w", s.home, err)
	}
	now.version, _, _ = strings.Cut(now.version, " ")
	_, err = conn.Exec(ctx, `DO LANGUAGE plpgsql $$BEGIN END$$`)
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		now.broken, err = refused, nil
	}
	return now, err
}

// connect connects to the server with our password.
func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, s.URLFor("postgres")+"&require_auth=scram-sha-256")
	if err != nil {
		return nil, fmt.Errorf("connect to the server in %s: %w", s.home, err)
	}
	return conn, nil
}

// replaced reports whether the program that the process runs is no longer in its place, as after the upgrade of a package. Only
// Linux can tell.
func (pm postmaster) replaced() bool {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pm.pid))
	return err == nil && strings.HasSuffix(program, " (deleted)")
}
