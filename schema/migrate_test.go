package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func TestMain(m *testing.M) {
	pgtest.MainWith(m, func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := Migrate(ctx, pool, Default)
		return err
	})
}

// migrated migrates an empty database.
func migrated(t testing.TB, name string) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.EmptyPool(t)
	if n, err := Migrate(t.Context(), pool, name); err != nil || n != len(Migrations) {
		t.Fatalf("applied %d: %v", n, err)
	}
	return pool
}

func query[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestMigrateIsIdempotent(t *testing.T) {
	t.Parallel()
	pool := migrated(t, Default)
	for range 2 {
		if n, err := Migrate(t.Context(), pool, Default); err != nil || n != 0 {
			t.Errorf("again: applied %d: %v", n, err)
		}
	}
	if err := Check(t.Context(), pool, Default); err != nil {
		t.Error(err)
	}
	if got := query[int](t, pool, "SELECT count(*) FROM pawl.migration"); got != len(Migrations) {
		t.Errorf("%d rows of %d migrations", got, len(Migrations))
	}
}

func TestConcurrentMigrate(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	var nodes sync.WaitGroup
	var applied atomic.Int64
	start := make(chan struct{})
	for range 8 {
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if err := pool.Ping(t.Context()); err != nil { // so that they begin together
			t.Fatal(err)
		}
		nodes.Go(func() {
			<-start
			n, err := Migrate(t.Context(), pool, Default)
			applied.Add(int64(n))
			if err == nil {
				err = Check(t.Context(), pool, Default)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	nodes.Wait()
	if got := applied.Load(); got != int64(len(Migrations)) {
		t.Errorf("%d migrations were applied of %d", got, len(Migrations))
	}
}

func TestMigrateRejectsNewerDatabase(t *testing.T) {
	t.Parallel()
	pool := migrated(t, Default)
	next := len(Migrations) + 1
	if _, err := pool.Exec(t.Context(), "INSERT INTO pawl.migration (number, name) VALUES ($1, 'of the future')", next); err != nil {
		t.Fatal(err)
	}
	n, err := Migrate(t.Context(), pool, Default)
	if !errors.Is(err, ErrNewer) || n != 0 {
		t.Errorf("Migrate: applied %d: %v", n, err)
	}
	err = Check(t.Context(), pool, Default)
	if !errors.Is(err, ErrNewer) || errors.Is(err, ErrBehind) {
		t.Errorf("Check: %v", err)
	}
	if want := fmt.Sprintf("schema version %d, program %d", next, next-1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Check: %v does not say %q", err, want)
	}
}

// A schema with a table of the same name, or with another program's migrations, is not changed.
func TestMigrateRejectsForeignDatabase(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func() *pgxpool.Pool{
		"a table of another shape": func() *pgxpool.Pool {
			pool := pgtest.EmptyPool(t)
			if _, err := pool.Exec(t.Context(), "CREATE SCHEMA pawl CREATE TABLE migration (version text)"); err != nil {
				t.Fatal(err)
			}
			return pool
		},
		"another migration": func() *pgxpool.Pool {
			pool := migrated(t, Default)
			if _, err := pool.Exec(t.Context(), "UPDATE pawl.migration SET name = 'elsewhere' WHERE number = 2"); err != nil {
				t.Fatal(err)
			}
			return pool
		},
	} {
		pool := made()
		const shape = `SELECT coalesce(string_agg(attname || coalesce(col_description(attrelid, attnum), ''), ' ' ORDER BY attnum), '')
			FROM pg_attribute WHERE attrelid = 'pawl.migration'::regclass`
		before := query[string](t, pool, shape)
		n, err := Migrate(t.Context(), pool, Default)
		if n != 0 || !errors.Is(err, ErrForeign) || errors.Is(err, ErrBehind) || errors.Is(err, ErrNewer) {
			t.Errorf("%s: applied %d: %v", name, n, err)
		}
		if err := Check(t.Context(), pool, Default); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
		if after := query[string](t, pool, shape); after != before {
			t.Errorf("%s: it was %s, and is %s", name, before, after)
		}
	}
}

func TestCheckReportsBehind(t *testing.T) {
	t.Parallel()
	pool := pgtest.EmptyPool(t)
	for _, sql := range []string{
		"SELECT 'nothing is there'",
		"CREATE SCHEMA pawl",
		"CREATE TABLE pawl.migration (number int, name text, applied_at timestamptz, needs int)",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if err := Check(t.Context(), pool, Default); !errors.Is(err, ErrBehind) {
			t.Errorf("after %s: %v", sql, err)
		}
	}
}

func TestCheckDistinguishesOutageFromBehind(t *testing.T) {
	t.Parallel()
	pool := pgtest.EmptyPool(t)
	pool.Close()
	if err := Check(t.Context(), pool, Default); err == nil || errors.Is(err, ErrBehind) || errors.Is(err, ErrNewer) {
		t.Errorf("got %v", err)
	}
	if _, err := Migrate(t.Context(), pool, Default); err == nil {
		t.Error("migrated nothing")
	}
}

func TestMigrateOtherSchemaName(t *testing.T) {
	t.Parallel()
	const name = "other_1"
	pool := migrated(t, name)
	if n, err := Migrate(t.Context(), pool, name); err != nil || n != 0 {
		t.Errorf("again: applied %d: %v", n, err)
	}
	if err := Check(t.Context(), pool, Default); !errors.Is(err, ErrBehind) {
		t.Errorf("the default schema: %v", err)
	}
	if query[bool](t, pool, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'pawl')") {
		t.Error("something made the schema pawl")
	}
	if got := query[string](t, pool, `SELECT coalesce(string_agg(proname, ', '), '') FROM pg_proc
		WHERE pronamespace = $1::regnamespace AND prosrc LIKE '%pawl.%'`, name); got != "" {
		t.Errorf("these functions still name the schema pawl: %s", got)
	}
	// Two schemas side by side with the same tables.
	if n, err := Migrate(t.Context(), pool, Default); err != nil || n != len(Migrations) {
		t.Fatalf("beside it: applied %d: %v", n, err)
	}
	tables := `SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class WHERE relnamespace = $1::regnamespace`
	if got, want := query[string](t, pool, tables, name), query[string](t, pool, tables, Default); got != want || want == "" {
		t.Errorf("got %s, want %s", got, want)
	}
	// The trigger of the other schema numbers its own rows.
	provisional := row{"position": "-1", "at": "now()"}
	if _, err := pool.Exec(t.Context(), In(name, "INSERT INTO {pawl}.outbox "+validRows["outbox"].insert(provisional)+
		"; INSERT INTO {pawl}.audit "+validRows["audit"].insert(provisional)), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if got := query[int64](t, pool, "SELECT position FROM other_1.audit"); got != 1 {
		t.Errorf("position %d", got)
	}
	if got := query[int64](t, pool, "SELECT count(*) FROM pawl.log"); got != 0 {
		t.Error("the log of the schema pawl moved")
	}
}

// Not parallel: it adds a migration to the program.
func TestFailedMigrationIsRolledBack(t *testing.T) {
	kept := Migrations
	defer func() { Migrations = kept }()
	pool := migrated(t, Default)
	next := len(kept) + 1
	good := Migration{next, "good", next, "CREATE TABLE pawl.good (n int)"}
	bad := Migration{next + 1, "bad", next + 1, "CREATE TABLE pawl.half (n int); INSERT INTO pawl.half VALUES (1); SELECT 1/0"}
	Migrations = append(append([]Migration{}, kept...), good, bad)

	if err := Check(t.Context(), pool, Default); !errors.Is(err, ErrBehind) {
		t.Errorf("before: %v", err)
	}
	n, err := Migrate(t.Context(), pool, Default)
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != "22012" || n != 1 {
		t.Errorf("applied %d: %v; want the good one and the division by zero of the bad one", n, err)
	}
	if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("migration %04d_bad", next+1)) {
		t.Errorf("%v does not name the migration", err)
	}
	if got := query[int](t, pool, "SELECT max(number) FROM pawl.migration"); got != next {
		t.Errorf("the database is at %d, want %d", got, next)
	}
	if query[bool](t, pool, "SELECT to_regclass('pawl.half') IS NOT NULL") ||
		!query[bool](t, pool, "SELECT to_regclass('pawl.good') IS NOT NULL") {
		t.Error("half of the bad migration stayed, or the good one went with it")
	}
	Migrations[next].SQL = "CREATE TABLE pawl.half (n int)"
	if n, err := Migrate(t.Context(), pool, Default); n != 1 || err != nil {
		t.Errorf("mended: applied %d: %v", n, err)
	}
}

// The full text of every function is in a migration.
func TestFunctionsMatchMigrations(t *testing.T) {
	t.Parallel()
	pool := migrated(t, Default)
	rows, err := pool.Query(t.Context(), "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'pawl'::regnamespace")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	var name, text string
	if _, err := pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		found++
		for _, m := range Migrations {
			if strings.Contains(migrationIn(Default, m.SQL), text) {
				return nil
			}
		}
		t.Errorf("the text of pawl.%s is in no migration", name)
		return nil
	}); err != nil || found < 20 {
		t.Fatalf("%d functions: %v", found, err)
	}
}

// A function of that name earlier in the search path fakes the server's version.
func TestServerVersionIsChecked(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"90600": "PostgreSQL 14 or newer is needed, this is 9", "130012": "PostgreSQL 14 or newer is needed, this is 13",
		"140000": "", "180001": "", "990000": "",
	} {
		pool := pgtest.DirectTo(t, pgtest.EmptyPool(t)) // the search path belongs to the session
		_, err := pool.Exec(t.Context(), `CREATE SCHEMA pretend;
			CREATE FUNCTION pretend.current_setting(text) RETURNS text LANGUAGE sql AS $$
			SELECT CASE $1 WHEN 'server_version_num' THEN '`+version+`' ELSE pg_catalog.current_setting($1) END $$`)
		if err != nil {
			t.Fatal(err)
		}
		config := pool.Config()
		config.ConnConfig.RuntimeParams["search_path"] = "pretend, pg_catalog"
		pretender, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Migrate(t.Context(), pretender, Default)
		pretender.Close()
		switch {
		case want == "" && err != nil:
			t.Errorf("version %s: %v", version, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("version %s: %v, want %q", version, err, want)
		case want != "" && query[bool](t, pool, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'pawl')"):
			t.Errorf("version %s: refused, and the schema made all the same", version)
		}
	}
}

func TestMigrationsAreNumbered(t *testing.T) {
	t.Parallel()
	for i, m := range Migrations {
		if m.Number != i+1 || m.Name == "" || m.SQL == "" {
			t.Errorf("migration %d is %d %q", i+1, m.Number, m.Name)
		}
	}
	for name, files := range map[string]fstest.MapFS{
		"a gap":      {"migrations/0001_a.sql": {}, "migrations/0003_c.sql": {}},
		"a double":   {"migrations/0001_a.sql": {}, "migrations/0001_b.sql": {}},
		"no number":  {"migrations/first.sql": {}},
		"not from 1": {"migrations/0002_b.sql": {}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", name)
				}
			}()
			mustLoad(files)
		}()
	}
}
