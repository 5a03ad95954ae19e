package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/testkit/bouncer"
)

// limit bounds each step of the set-up and the clean-up of a test.
const limit = 2 * time.Minute

// EnvBouncer names the environment variable that has the tests run through a PgBouncer in transaction mode, when it is not
// empty.
const EnvBouncer = "PAWL_BOUNCER"

// bouncerSessions is the number of server sessions that a database's tests share behind PgBouncer: few enough that sessions are reused by
// other clients soon, and enough for the transactions that tests keep open at once.
const bouncerSessions = 20

// shared is this process's use of the server. The first test that needs it connects.
var shared struct {
	mu      sync.Mutex
	inMain  bool
	prepare Prepare
	server  *server
	err     error // of the attempt to connect, which is not repeated
}

// Prepare fills a database, past PgBouncer.
type Prepare func(ctx context.Context, pool *pgxpool.Pool) error

// Main is all that a package's TestMain needs to call. It runs the tests and then ends this process's use of the server.
// When it returns, the testing package ends the process with the result of the tests.
func Main(m *testing.M) { MainWith(m, nil) }

// MainWith is Main for tests whose databases do not begin empty, but as copies of one that was prepared; which takes a
// fraction of the time of preparing each.
func MainWith(m *testing.M, prepare Prepare) {
	shared.mu.Lock()
	shared.inMain, shared.prepare = true, prepare
	shared.mu.Unlock()

	failed := m.Run() != 0

	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.inMain = false
	if shared.server == nil {
		return
	}
	said, crashed := shared.server.bouncerCrashed()
	if err := shared.server.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		os.Exit(1)
	}
	if failed && crashed {
		os.Exit(again(said))
	}
}

// URL returns the connection URL of a new, empty database, which is dropped when the test ends, even with open connections. The test fails
// if there is no server, or if its package does not call Main.
func URL(t testing.TB) string {
	t.Helper()
	s, name := create(t, prepared)
	return s.urlFor(name)
}

// DirectURL is URL, and never leads through PgBouncer. It is for tests about what a session keeps: LISTEN, settings,
// prepared statements, process numbers.
func DirectURL(t testing.TB) string {
	t.Helper()
	s, name := create(t, prepared)
	return s.directURLFor(name)
}

// BouncerURL is like URL, but always leads through PgBouncer. The test is skipped without PgBouncer.
func BouncerURL(t testing.TB) string {
	t.Helper()
	s, name := create(t, prepared)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	b, err := s.bouncer(ctx)
	if errors.Is(err, bouncer.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return b.Through(s.directURLFor(name))
}

// Direct leads past PgBouncer to the database of a URL that this package gave.
func Direct(t testing.TB, through string) string {
	t.Helper()
	s, err := connect()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	config, err := pgx.ParseConfig(through)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s.directURLFor(config.Database)
}

// DirectTo is a pool past PgBouncer to the database of a pool that leads to one of this package's.
func DirectTo(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	return open(t, Direct(t, pool.Config().ConnString()))
}

// EmptyPool is like Pool but skips the template.
func EmptyPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, EmptyURL(t))
}

// EmptyURL is like URL but skips the template.
func EmptyURL(t testing.TB) string {
	t.Helper()
	s, name := create(t, func(*server) string { return empty })
	return s.urlFor(name)
}

func prepared(s *server) string { return s.template }

func create(t testing.TB, template func(*server) string) (*server, string) {
	t.Helper()
	s, err := connect()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	name, err := s.create(ctx, template(s))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s, name
}

// Pool returns a pool of connections to a new, empty database, like URL. Both end with the test, which fails if connections are still in
// use a minute later.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, URL(t))
}

// DirectPool is Pool, and never leads through PgBouncer.
func DirectPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, DirectURL(t))
}

func open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return openConfig(t, config)
}

func openConfig(t testing.TB, config *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			pool.Close()
		}()
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Errorf("pgtest: the test ended with %d connections of its pool in use", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// connect returns this process's server.
func connect() (*server, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.inMain {
		return nil, errors.New("the package needs func TestMain(m *testing.M) { pgtest.Main(m) }")
	}
	if shared.server == nil && shared.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		shared.server, shared.err = openServer(ctx, shared.prepare)
	}
	return shared.server, shared.err
}
