package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/testkit/bouncer"
)

// The databases of a process are named pawltest_<process>_<owner>_<number>, where owner is the random key, in hex, of
// the advisory lock (lockClass, owner) that the process holds for as long as it lives.
const (
	lockClass  = 0x7061776c // "pawl"
	namePrefix = "pawltest_"
)

// maxConnections is enough for several packages at once, each with as many parallel tests as a large machine has
// processors, and each test with several nodes.
const maxConnections = "1000"

// server is this process's use of a PostgreSQL server.
type server struct {
	local *localpg.Server // nil if DATABASE_URL names the server
	base  string          // connection string of the maintenance database
	admin *pgxpool.Pool
	held  *pgxpool.Conn // holds the advisory lock
	owner uint32
	count atomic.Int64

	pooled bool // the tests run through PgBouncer
	mu     sync.Mutex
	front  *bouncer.Bouncer // nil until a test needs it

	template string // what the tests' databases are copies of
}

// empty is the template of empty databases. It has no connections.
const empty = "template0"

// openServer finds the server, takes the owner's lock, drops the databases whose owners are gone, and prepares the one that
// those of the tests are copies of; without prepare they begin empty.
func openServer(ctx context.Context, prepare Prepare) (_ *server, err error) {
	s := &server{base: os.Getenv("DATABASE_URL"), owner: rand.Uint32(), template: empty}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.base == "" {
		dir, err := localpg.ThrowAwayDir("pgtest")
		if err != nil {
			return nil, err
		}
		o := localpg.Options{Dir: dir, Ephemeral: true, Settings: map[string]string{"max_connections": maxConnections}}
		if s.local, err = localpg.Start(ctx, o); err != nil {
			return nil, err
		}
		s.base = s.local.URL()
	}
	if err = s.lock(ctx); err != nil {
		return nil, err
	}
	if s.pooled = os.Getenv(EnvBouncer) != ""; s.pooled {
		if _, err := s.bouncer(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", EnvBouncer, err)
		}
	}
	if err = s.sweep(ctx); err == nil && prepare != nil {
		err = s.prepare(ctx, prepare)
	}
	return s, err
}

// lock connects, and takes the lock that names the databases of this process.
func (s *server) lock(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(s.base)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	config.MaxConns = 3 // one of them holds the lock
	if s.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if s.held, err = s.admin.Acquire(ctx); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if _, err = s.held.Exec(ctx, `SELECT pg_advisory_lock($1, $2)`, int32(lockClass), int32(s.owner)); err != nil {
		return fmt.Errorf("take the lock that names our databases: %w", err)
	}
	return nil
}

// close releases the server, and stops it if no other user remains.
func (s *server) close() (err error) {
	if s.front != nil {
		err = s.front.Stop()
	}
	if s.template != empty {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err = errors.Join(err, s.drop(ctx, s.template))
	}
	if s.held != nil {
		s.held.Release()
	}
	if s.admin != nil {
		s.admin.Close()
	}
	if s.local != nil {
		err = errors.Join(err, s.local.Stop())
	}
	return err
}

// create copies a database without connections, so that tests do not block each other.
func (s *server) create(ctx context.Context, template string) (name string, err error) {
	name = fmt.Sprintf("%s%d_%08x_%d", namePrefix, os.Getpid(), s.owner, s.count.Add(1))
	sql := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	if _, err := s.admin.Exec(ctx, sql); err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	if os.Getenv(EnvRole) != "" { // a user who is called as Pawl's schema would put a test's own tables into it
		if _, err := s.admin.Exec(ctx, "ALTER DATABASE "+pgx.Identifier{name}.Sanitize()+" SET search_path = public"); err != nil {
			return "", fmt.Errorf("set the search path of a database: %w", err)
		}
	}
	return name, nil
}

// prepare makes the database that those of the tests are copies of.
func (s *server) prepare(ctx context.Context, prepare Prepare) error {
	name, err := s.create(ctx, empty)
	if err != nil {
		return err
	}
	s.template = name
	pool, err := pgxpool.New(ctx, s.directURLFor(name))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	err = prepare(ctx, pool)
	pool.Close()
	if err != nil {
		return fmt.Errorf("prepare the tests' databases: %w", err)
	}
	return s.alone(ctx, name)
}

// alone waits until a database has no connections: a backend ends some time after its client. CREATE DATABASE waits for that too, but only
// 5 seconds.
func (s *server) alone(ctx context.Context, name string) error {
	for {
		var others int
		err := s.admin.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`, name).
			Scan(&others)
		if err != nil {
			return fmt.Errorf("ask who is connected: %w", err)
		}
		if others == 0 {
			return nil
		}
		time.Sleep(5 * time.Millisecond) // between two questions
	}
}

// drop removes a database and disconnects whoever uses it.
func (s *server) drop(ctx context.Context, name string) error {
	sql := "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)"
	if _, err := s.admin.Exec(ctx, sql); err != nil {
		return fmt.Errorf("drop a database: %w", err)
	}
	return nil
}

// sweep drops the databases of owners whose lock is free. Advisory locks belong to a database, and pg_locks shows those
// of all.
func (s *server) sweep(ctx context.Context) error {
	const orphans = `
		SELECT datname FROM pg_database
		WHERE datname ~ ('^' || $1 || '[0-9]+_[0-9a-f]{8}_[0-9]+$')
		  AND NOT EXISTS (
			SELECT FROM pg_locks
			WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid = $2::bigint::oid
			  AND lpad(to_hex(objid::bigint), 8, '0') = split_part(datname, '_', 3))`
	rows, _ := s.admin.Query(ctx, orphans, namePrefix, int64(lockClass)) // its error is that of the rows
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list left-over databases: %w", err)
	}
	for _, name := range names {
		if err := s.drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// bouncer returns this process's PgBouncer. The first call starts it.
func (s *server) bouncer(ctx context.Context) (_ *bouncer.Bouncer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.front == nil {
		s.front, err = bouncer.Start(ctx, s.base, bouncerSessions)
	}
	return s.front, err
}

// bouncerCrashed returns what this process's PgBouncer has said last if it has crashed.
func (s *server) bouncerCrashed() (said string, crashed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.front == nil {
		return "", false
	}
	return s.front.Crashed()
}

// urlFor names a database, through PgBouncer where the tests run so.
func (s *server) urlFor(name string) string {
	if s.pooled {
		return s.front.Through(s.directURLFor(name))
	}
	return s.directURLFor(name)
}

// directURLFor replaces the database in the connection string, which is a URL or a list of keywords and values.
func (s *server) directURLFor(name string) string {
	if u, err := url.Parse(s.base); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Path, u.RawPath = "/"+name, ""
		return u.String()
	}
	return s.base + " dbname=" + name // the last one counts
}
