package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// limit bounds each step of the set-up and the clean-up of a test.
const limit = 2 * time.Minute

// shared is this process's use of the server. The first test that needs it connects.
var shared struct {
	mu     sync.Mutex
	inMain bool
	server *server
	err    error // of the attempt to connect, which is not repeated
}

// Main is all that a package's TestMain needs to call. It runs the tests and then ends this process's use of the server.
// When it returns, the testing package ends the process with the result of the tests.
func Main(m *testing.M) {
	shared.mu.Lock()
	shared.inMain = true
	shared.mu.Unlock()

	m.Run()

	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.inMain = false
	if shared.server == nil {
		return
	}
	if err := shared.server.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		os.Exit(1)
	}
}

// URL returns the connection URL of a new, empty database, which is dropped when the test ends, whoever is still
// connected to it. The test fails if there is no server, or if its package does not call Main.
func URL(t testing.TB) string {
	t.Helper()
	s, err := connect()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	name, err := s.create(ctx)
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
	return s.urlFor(name)
}

// Pool returns a pool of connections to a new, empty database, as URL does. Both end with the test, which fails if it
// has not given back its connections 10 seconds later.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), URL(t))
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
		case <-time.After(10 * time.Second):
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
		shared.server, shared.err = openServer(ctx)
	}
	return shared.server, shared.err
}
