package localpg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// ErrNoBouncer says that PgBouncer is not on this machine.
var ErrNoBouncer = errors.New("no PgBouncer found: install it (package pgbouncer)")

// Bouncer is a PgBouncer in transaction mode in front of a server. It ends with the program, as a throw-away server does.
type Bouncer struct {
	home    string
	users   *fileLock
	account *account
	child   *child
	port    int

	stopOnce sync.Once
	stopErr  error
}

// StartBouncer starts the PgBouncer of this machine in front of the server that the connection string leads to, over TCP,
// for its user and any database. It has so many sessions of the server for each database, which its clients share. Call
// Stop when done. Error: ErrNoBouncer.
func StartBouncer(ctx context.Context, server string, sessions int) (*Bouncer, error) {
	program, err := findBouncer()
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return nil, fmt.Errorf("the server behind PgBouncer: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	b := &Bouncer{}
	if b.home, b.users, err = makeRun(ctx, tempBase); err != nil {
		return nil, err
	}
	if b.account, err = serverAccount(b.home); err == nil {
		err = b.launch(ctx, program, config, sessions)
	}
	if err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

// HasBouncer reports whether this machine has a PgBouncer to start.
func HasBouncer() bool {
	_, err := findBouncer()
	return err == nil
}

// findBouncer returns the program, which Debian keeps where only root looks.
func findBouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoBouncer
}

// launch starts the program on a free port, and on another one if somebody takes the port in between.
func (b *Bouncer) launch(ctx context.Context, program string, server *pgx.ConnConfig, sessions int) error {
	const attempts = 5
	for range attempts {
		var err error
		if b.port, err = freePort(); err != nil {
			return err
		}
		if ready, err := b.launchOn(ctx, program, server, sessions); ready || err != nil {
			return err
		}
	}
	return fmt.Errorf("PgBouncer did not start; it says:\n%s", tail(b.path("bouncer.log")))
}

func (b *Bouncer) launchOn(ctx context.Context, program string, server *pgx.ConnConfig, sessions int) (ready bool, err error) {
	if err := b.configure(server, sessions); err != nil {
		return false, err
	}
	output, err := os.OpenFile(b.path("bouncer.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return false, fmt.Errorf("create the log of PgBouncer: %w", err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	cmd := exec.Command(program, b.path("bouncer.ini"))
	b.account.runs(cmd)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.home, output, output
	if b.child, err = startChild(cmd, true); err != nil {
		return false, err
	}
	err = poll(ctx, "PgBouncer to accept connections", func() (bool, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.address())
		if err == nil {
			_ = conn.Close()
		}
		ready = err == nil && !b.child.ended()
		return ready || b.child.ended(), nil
	})
	return ready, err
}

// configure writes the files that PgBouncer reads.
func (b *Bouncer) configure(server *pgx.ConnConfig, sessions int) error {
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 2000
server_login_retry = 1
query_wait_timeout = 30
log_connections = 0
log_disconnections = 0
`, server.Host, server.Port, loopback, b.port, b.path("users.txt"), sessions)
	users := fmt.Sprintf("%s %s\n", quoted(server.User), quoted(server.Password))
	return errors.Join(b.write("bouncer.ini", settings), b.write("users.txt", users))
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// write puts a file into the home that only the account of the program may read.
func (b *Bouncer) write(name, text string) error {
	if err := os.WriteFile(b.path(name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("configure PgBouncer: %w", err)
	}
	return b.account.own(b.path(name))
}

func (b *Bouncer) path(name string) string { return filepath.Join(b.home, name) }
func (b *Bouncer) address() string         { return net.JoinHostPort(loopback, strconv.Itoa(b.port)) }

// Through makes of a connection string for the server, a URL or a list of keywords and values, the one through PgBouncer.
// It asks the driver to prepare nothing.
func (b *Bouncer) Through(server string) string {
	if u, err := url.Parse(server); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Host = b.address()
		query := u.Query()
		query.Set("sslmode", "disable")
		query.Set("default_query_exec_mode", "exec")
		u.RawQuery = query.Encode()
		return u.String()
	}
	return fmt.Sprintf("%s host=%s port=%d sslmode=disable default_query_exec_mode=exec", server, loopback, b.port) // the last one counts
}

// Crashed returns what PgBouncer has said last, and true, if it has ended though nobody has called Stop.
func (b *Bouncer) Crashed() (said string, crashed bool) {
	if b.child == nil || !b.child.ended() {
		return "", false
	}
	return tail(b.path("bouncer.log")), true
}

// Stop ends PgBouncer and everything that is under way through it. Further calls do nothing and return what the first did.
func (b *Bouncer) Stop() error {
	b.stopOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		var err error
		if b.child != nil {
			err = b.child.end(ctx, syscall.SIGTERM)
		}
		b.stopErr = errors.Join(err, removeRun(ctx, b.home), b.users.close())
	})
	return b.stopErr
}
