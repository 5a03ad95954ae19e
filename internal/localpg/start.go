package localpg

import (
	"context"
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
)

func (s *Server) path(name string) string { return filepath.Join(s.home, name) }
func (s *Server) data() string            { return s.path("data") }

// homes are those with data in the folder of a lasting server: it goes on with that data, whatever version is installed
// later. Of a throw-away server there are none: its data can be made anew.
func (o Options) homes() (homes []string) {
	for major := oldestMajor; major <= newestMajor && !o.Ephemeral; major++ {
		home := binaries{major: major}.home(o.Dir)
		if _, err := os.Stat(filepath.Join(home, "data")); err == nil {
			homes = append(homes, home)
		}
	}
	return homes
}

// Exists reports whether there is data of the lasting private server that Start uses by default.
func Exists() (bool, error) {
	dir, err := UserDir("postgres")
	return err == nil && len(Options{Dir: dir}.homes()) > 0, err
}

// start adopts or starts the server, with the home locked against other programs that would do the same.
func (s *Server) start(ctx context.Context, o Options, bin binaries, log logger) (err error) {
	lock, err := lockFile(ctx, s.path("lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	if s.users == nil {
		if s.users, err = openLock(s.path("users")); err != nil {
			return err
		}
		if err := s.users.wait(ctx, syscall.LOCK_SH); err != nil {
			return err
		}
	}
	if s.account, err = serverAccount(s.data()); err != nil {
		return err
	}
	if err := errors.Join(s.account.reaches(s.home), s.account.reaches(bin.dir)); err != nil {
		return err
	}
	running, err := s.adopt(ctx, log)
	if err != nil {
		return err
	}
	if running {
		if err := s.readPassword(); err != nil {
			return err
		}
		if running, err = s.refresh(ctx, bin, log); err != nil {
			return err
		}
	}
	if !running {
		if err := s.prepare(ctx, o, bin, log); err != nil {
			return err
		}
		if err := s.launch(ctx, o, bin, log); err != nil {
			return err
		}
	}
	if err := s.readPassword(); err != nil {
		return err
	}
	return s.createDatabase(ctx)
}

func (s *Server) readPassword() error {
	password, err := os.ReadFile(s.path("password"))
	if err != nil {
		return fmt.Errorf("read the server's password: %w", err)
	}
	s.password = strings.TrimSpace(string(password))
	return nil
}

// adopt looks for a server that runs in the home already. One that is just stopping is waited for and does not count.
func (s *Server) adopt(ctx context.Context, log logger) (bool, error) {
	pm, ok := runningIn(s.data())
	if !ok {
		return false, nil
	}
	pm, ready, err := pm.awaitReady(ctx, pm.ended)
	if ready {
		log("using the PostgreSQL that runs in %s", s.home)
		s.port = pm.port
	}
	return ready, err
}

// launch starts the server on a free port, and on another one if somebody takes the port in between. Backends of a server
// that was killed may not have ended yet; it waits for them.
func (s *Server) launch(ctx context.Context, o Options, bin binaries, log logger) error {
	log("starting PostgreSQL %s in %s", bin.version, s.home)
	if err := clearStale(s.data()); err != nil {
		return err
	}
	const attempts = 5
	for taken := 0; taken < attempts; {
		port, err := s.freePort()
		if err != nil {
			return err
		}
		ready, err := s.launchOn(ctx, port, o, bin)
		if ready || err != nil {
			return err
		}
		switch said := tail(s.path("server.log")); {
		case strings.Contains(said, "pre-existing shared memory block"):
			log("waiting for what is left of a PostgreSQL that was killed")
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("waiting for what is left of a PostgreSQL that was killed: %w; it says:\n%s", context.Cause(ctx), said)
			}
		case strings.Contains(said, "could not bind"): // by now it may be free again
			taken++
		default:
			return fmt.Errorf("PostgreSQL did not start; it says:\n%s", said)
		}
	}
	return fmt.Errorf("PostgreSQL did not start: in %d attempts each port was taken by another program", attempts)
}

// launchOn starts the server on the port and reports whether it came up.
func (s *Server) launchOn(ctx context.Context, port int, o Options, bin binaries) (ready bool, err error) {
	logPath := s.path("server.log")
	if err := os.Rename(logPath, logPath+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("put the server's last log aside: %w", err)
	}
	logFile, err := os.OpenFile(logPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return false, fmt.Errorf("create the server's log: %w", err)
	}
	defer func() { err = errors.Join(err, logFile.Close()) }()

	cmd := s.command(exec.Command(bin.path("postgres"), arguments(s.data(), port, o)...))
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if s.child, err = startChild(cmd, s.private); err != nil {
		return false, err
	}
	pm, ready, err := postmaster{data: s.data(), pid: s.child.process.Pid}.awaitReady(ctx, s.child.ended)
	if ready {
		s.port = pm.port
	} else if err == nil {
		s.child = nil
	}
	return ready, err
}

// command makes a program of PostgreSQL run as the server's account, in the home, and free of our environment's
// settings for PostgreSQL and languages.
func (s *Server) command(cmd *exec.Cmd) *exec.Cmd {
	s.account.runs(cmd)
	cmd.Dir = s.home
	cmd.Env = []string{"LC_ALL=C"}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_") && !strings.HasPrefix(entry, "LANG") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	return cmd
}

// createDatabase proves that the server answers with our password, and creates the database "pawl" if it is missing.
func (s *Server) createDatabase(ctx context.Context) (err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var exists bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&exists)
	if err == nil && !exists {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize())
	}
	if err != nil {
		return fmt.Errorf("create the database %s: %w", database, err)
	}
	return nil
}

// freePort asks the system for a port of the loopback interface that is free now.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", loopback+":0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// tail returns the end of a log for an error message.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return lastPart(content)
}

// lastPart returns the end of a program's output, where it says what went wrong.
func lastPart(output []byte) string {
	const most = 2000
	return strings.TrimSpace(string(output[max(0, len(output)-most):]))
}
