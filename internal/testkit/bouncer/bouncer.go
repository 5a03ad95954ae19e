// Package bouncer runs a PgBouncer in transaction mode for tests and measurements.
package bouncer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotInstalled reports that this machine has no PgBouncer.
var ErrNotInstalled = errors.New("no PgBouncer found: install it (package pgbouncer)")

// Bouncer is a running PgBouncer. It ends with the program.
type Bouncer struct {
	home    string
	address string
	ended   chan struct{}
	stop    func() error
}

// Start starts the PgBouncer of this machine in front of a server, for the user of its connection string and any database. Its clients
// share the given number of sessions for each database. Error: ErrNotInstalled.
func Start(ctx context.Context, server string, sessions int) (*Bouncer, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return nil, fmt.Errorf("the server behind PgBouncer: %w", err)
	}
	b := &Bouncer{ended: make(chan struct{})}
	if b.home, err = os.MkdirTemp("", "pawl-bouncer-"); err != nil {
		return nil, err
	}
	if err := b.start(ctx, program, config, sessions); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.home))
	}
	return b, nil
}

// Installed reports whether this machine has a PgBouncer.
func Installed() bool {
	_, err := find()
	return err == nil
}

// find returns the program, which Debian keeps outside of most users' PATH.
func find() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNotInstalled
}

func (b *Bouncer) path(name string) string { return filepath.Join(b.home, name) }

// start starts the program on a free port, through a shell that kills it when this program ends, and waits until it accepts connections.
func (b *Bouncer) start(ctx context.Context, program string, server *pgx.ConnConfig, sessions int) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.address = l.Addr().String()
	args := []string{"-c", `exec 3<&0; "$@" & pid=$!; { read -r _ <&3; kill -KILL $pid; } & wait $pid`, "sh", program, b.path("bouncer.ini")}
	if err := errors.Join(l.Close(), b.configure(server, sessions)); err != nil {
		return err
	}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		args = append(args, "-u", "nobody")
		if err := b.giveToNobody(); err != nil {
			return err
		}
	}
	output, err := os.Create(b.path("bouncer.log"))
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = b.home, output, output, &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err := errors.Join(err, output.Close()); err != nil {
		return err
	}
	go func() {
		defer close(b.ended)
		_ = cmd.Wait() // the log has the reason
	}()
	b.stop = sync.OnceValue(func() error {
		_ = stdin.Close() // closed if it has ended
		<-b.ended
		return os.RemoveAll(b.home)
	})
	for {
		if conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.address); err == nil {
			return conn.Close()
		}
		select {
		case <-b.ended:
			said, _ := b.Crashed()
			return fmt.Errorf("PgBouncer did not start; it says:\n%s", said)
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), b.stop())
		case <-time.After(5 * time.Millisecond): // between two attempts
		}
	}
}

func (b *Bouncer) configure(server *pgx.ConnConfig, sessions int) error {
	_, port, err := net.SplitHostPort(b.address)
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
pidfile = %s
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 2000
server_login_retry = 1
query_wait_timeout = 30
log_connections = 0
log_disconnections = 0
`, server.Host, server.Port, port, b.path("pid"), b.path("users.txt"), sessions)
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	return errors.Join(err, os.WriteFile(b.path("bouncer.ini"), []byte(settings), 0o600),
		os.WriteFile(b.path("users.txt"), []byte(quoted(server.User)+" "+quoted(server.Password)+"\n"), 0o600))
}

func (b *Bouncer) giveToNobody() error {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(nobody.Uid)
	for _, name := range []string{"", "bouncer.ini", "users.txt"} {
		err = errors.Join(err, os.Lchown(b.path(name), uid, -1))
	}
	return err
}

// Through returns the connection string, a URL or keywords and values, of the same database through PgBouncer. It has the driver prepare
// no statements.
func (b *Bouncer) Through(server string) string {
	if u, err := url.Parse(server); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Host = b.address
		query := u.Query()
		query.Set("sslmode", "disable")
		query.Set("default_query_exec_mode", "exec")
		u.RawQuery = query.Encode()
		return u.String()
	}
	host, port, _ := net.SplitHostPort(b.address)
	return fmt.Sprintf("%s host=%s port=%s sslmode=disable default_query_exec_mode=exec", server, host, port) // the last one counts
}

// Crashed returns the log and true if PgBouncer has ended.
func (b *Bouncer) Crashed() (said string, crashed bool) {
	select {
	case <-b.ended:
		log, err := os.ReadFile(b.path("bouncer.log"))
		return fmt.Sprintf("%s (%v)", log, err), true
	default:
		return "", false
	}
}

// Stop kills PgBouncer, and so everything that is in progress through it. Further calls do nothing.
func (b *Bouncer) Stop() error { return b.stop() }
