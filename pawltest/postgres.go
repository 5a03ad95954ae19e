package pawltest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// Main is all that the TestMain of a package needs to call whose tests use [Postgres] or [Engine]:
//
//	func TestMain(m *testing.M) { pawltest.Main(m) }
//
// It runs the tests, and stops what they have started.
func Main(m *testing.M) { pgtest.Main(m) }

// Postgres is a database of the test's own with Pawl's tables in the schema "pawl". It is dropped when the test ends.
//
// Its server is the one that DATABASE_URL names, with a role that may create databases, or else a private one that is found on the machine
// or downloaded once. The package's TestMain must call [Main].
func Postgres(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t)
	if _, err := schema.Migrate(t.Context(), pool, schema.Default); err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	return pool
}

// stopWithin is how long an engine may take to end with its test.
const stopWithin = 30 * time.Second

// Engine is an engine that runs the workflows on a database of its own, as [Postgres] gives it. It is stopped when the test ends. A test
// that needs another configuration makes its engine itself.
func Engine(t testing.TB, sources ...workflow.Source) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Config{Pool: Postgres(t), Workflows: sources, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		e.Stop(ctx)
	})
	return e
}
