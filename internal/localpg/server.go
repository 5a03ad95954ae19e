package localpg

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func (s *Server) path(name string) string { return filepath.Join(s.home, name) }
func (s *Server) data() string            { return s.path("data") }

// start adopts or starts the server while it holds the home's lock.
func (s *Server) start(ctx context.Context, o Options, bin binaries, log logger) (err error) {
	lock, err := lockFile(ctx, s.path("lock"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if s.users, err = lockFile(ctx, s.path("users"), syscall.LOCK_SH); err != nil {
		return err
	}
	if s.account, err = serverAccount(s.data()); err != nil {
		return err
	}
	running, err := s.adopt(ctx, bin, log)
	if err == nil && !running {
		err = s.prepare(ctx, o, bin, log)
	}
	if err == nil && !running {
		err = s.launch(ctx, o, bin, log)
	}
	if err == nil {
		err = s.createDatabase(ctx)
	}
	return err
}

// adopt uses the server that runs in the home. It waits for one that is starting or stopping.
func (s *Server) adopt(ctx context.Context, bin binaries, log logger) (running bool, err error) {
	var pm postmaster
	err = poll(ctx, "PostgreSQL to accept connections", func() (bool, error) {
		pm, running = runningIn(s.data())
		return !running || pm.ready, nil
	})
	if err != nil || !running {
		return false, err
	}
	log("using the PostgreSQL that runs in %s", s.home)
	s.port = pm.port
	return s.refresh(ctx, pm, bin, log)
}

// prepare creates the data folder if it is missing. It replaces that of a throw-away server that crashed.
func (s *Server) prepare(ctx context.Context, o Options, bin binaries, log logger) error {
	if _, err := os.Stat(pidFile(s.data())); err == nil && o.Ephemeral {
		log("removing the data of a throw-away server that was not shut down in order")
		if err := os.RemoveAll(s.data()); err != nil {
			return err
		}
	}
	if _, err := os.Stat(s.data()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	log("creating a PostgreSQL %s data folder in %s", bin.version, s.home)
	fresh, password := s.path("data.new"), s.path("password") // renamed when it is complete
	err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o700), os.WriteFile(password, []byte(rand.Text()+"\n"), 0o600),
		s.account.own(fresh), s.account.own(password))
	if err != nil {
		return err
	}
	args := []string{"-D", fresh, "-U", role, "--pwfile", password, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C"}
	if o.Ephemeral {
		args = append(args, "--no-sync")
	}
	cmd := s.account.runs(exec.CommandContext(ctx, bin.path("initdb"), args...), s.home)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // its helpers too
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w; it says:\n%s", s.account.explain(cmd, err), lastPart(out))
	}
	return os.Rename(fresh, s.data())
}

// launch starts the server on a free port. It tries again if another program takes the port meanwhile, or if backends of a server that
// was killed have not ended yet.
func (s *Server) launch(ctx context.Context, o Options, bin binaries, log logger) error {
	log("starting PostgreSQL %s in %s", bin.version, s.home)
	if err := clearStale(s.data()); err != nil {
		return err
	}
	return poll(ctx, "PostgreSQL to start", func() (ready bool, err error) {
		if s.port, err = s.freePort(); err == nil {
			ready, err = s.launchOnce(ctx, o, bin)
		}
		if ready || err != nil {
			return ready, err
		}
		said, err := os.ReadFile(s.path("server.log"))
		if bytes.Contains(said, []byte("pre-existing shared memory block")) {
			log("waiting for the processes of a PostgreSQL that was killed")
		} else if !bytes.Contains(said, []byte("could not bind")) {
			err = errors.Join(err, fmt.Errorf("PostgreSQL did not start; it says:\n%s", lastPart(said)))
		}
		return false, err
	})
}

// launchOnce starts the server, and reports false if it ends before it accepts connections.
func (s *Server) launchOnce(ctx context.Context, o Options, bin binaries) (ready bool, err error) {
	_ = os.Rename(s.path("server.log"), s.path("server.log.old")) // missing the first time
	output, err := os.OpenFile(s.path("server.log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	cmd := s.account.runs(exec.Command(bin.path("postgres"), arguments(s.data(), s.port, o)...), s.home)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return false, s.account.explain(cmd, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the log has the reason
	}()
	err = poll(ctx, "PostgreSQL to accept connections", func() (bool, error) {
		select {
		case <-ended:
			return true, nil
		default:
			pm, running := runningIn(s.data())
			ready = running && pm.pid == cmd.Process.Pid && pm.ready
			return ready, nil
		}
	})
	if err != nil {
		_ = cmd.Process.Kill() // it may not handle other signals yet
		<-ended
	}
	return ready, err
}

// arguments returns the command line of the server. Of several values of a setting, the last one counts.
func arguments(data string, port int, o Options) []string {
	args := []string{"-D", data}
	set := func(settings ...string) {
		for _, s := range settings {
			args = append(args, "-c", s)
		}
	}
	set("shared_buffers=256MB", "max_connections=200", "max_wal_size=4GB", "checkpoint_timeout=15min")
	if !o.durable() { // it may be in memory
		set("max_wal_size=1GB", "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	for name, value := range o.Settings {
		set(name + "=" + value)
	}
	set("listen_addresses="+loopback, "unix_socket_directories=", fmt.Sprintf("port=%d", port))
	return args
}

// connect connects to the server with the password of the home.
func (s *Server) connect(ctx context.Context) (conn *pgx.Conn, err error) {
	password, err := os.ReadFile(s.path("password"))
	if err == nil {
		s.password = strings.TrimSpace(string(password))
		conn, err = pgx.Connect(ctx, s.URLFor("postgres")+"&require_auth=scram-sha-256")
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the server in %s: %w", s.home, err)
	}
	return conn, nil
}

func (s *Server) createDatabase(ctx context.Context) (err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var exists bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&exists)
	if err == nil && !exists {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+database)
	}
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", loopback+":0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// lastPart returns the end of a program's output, which has the reason of a failure.
func lastPart(output []byte) string {
	return strings.TrimSpace(string(output[max(0, len(output)-2000):]))
}

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
