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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	n, err := Migrate(t.Context(), pool, name)
	require.Truef(t, err == nil && n == len(Migrations), "applied %d: %v", n, err)
	return pool
}

// errOf is the error of a call whose value is not wanted.
func errOf[T any](_ T, err error) error { return err }

func query[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&v), sql)
	return v
}

func TestMigrateIsIdempotent(t *testing.T) {
	t.Parallel()
	pool := migrated(t, Default)
	for range 2 {
		n, err := Migrate(t.Context(), pool, Default)
		assert.Truef(t, err == nil && n == 0, "again: applied %d: %v", n, err)
	}
	assert.NoError(t, Check(t.Context(), pool, Default))
	assert.Equal(t, len(Migrations), query[int](t, pool, "SELECT count(*) FROM pawl.migration"), "rows of migrations")
}

func TestConcurrentMigrate(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	var nodes sync.WaitGroup
	var applied atomic.Int64
	start := make(chan struct{})
	for range 8 {
		pool, err := pgxpool.New(t.Context(), url)
		require.NoError(t, err)
		defer pool.Close()
		require.NoError(t, pool.Ping(t.Context())) // so that they begin together
		nodes.Go(func() {
			<-start
			n, err := Migrate(t.Context(), pool, Default)
			applied.Add(int64(n))
			if err == nil {
				err = Check(t.Context(), pool, Default)
			}
			assert.NoError(t, err)
		})
	}
	close(start)
	nodes.Wait()
	assert.Equalf(t, int64(len(Migrations)), applied.Load(), "migrations were applied of %d", len(Migrations))
}

// A schema with a table of the same name, or with another program's migrations, is not changed.
func TestMigrateRejectsForeignDatabase(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func() *pgxpool.Pool{
		"a table of another shape": func() *pgxpool.Pool {
			pool := pgtest.EmptyPool(t)
			require.NoError(t, errOf(pool.Exec(t.Context(), "CREATE SCHEMA pawl CREATE TABLE migration (version text)")))
			return pool
		},
		"another migration": func() *pgxpool.Pool {
			pool := migrated(t, Default)
			require.NoError(t, errOf(pool.Exec(t.Context(), "UPDATE pawl.migration SET name = 'elsewhere' WHERE number = 2")))
			return pool
		},
	} {
		pool := made()
		const shape = `SELECT coalesce(string_agg(attname || coalesce(col_description(attrelid, attnum), ''), ' ' ORDER BY attnum), '')
			FROM pg_attribute WHERE attrelid = 'pawl.migration'::regclass`
		before := query[string](t, pool, shape)
		n, err := Migrate(t.Context(), pool, Default)
		assert.Truef(t, n == 0 && errors.Is(err, ErrForeign) && !errors.Is(err, ErrBehind) && !errors.Is(err, ErrNewer),
			"%s: applied %d: %v", name, n, err)
		assert.ErrorIs(t, Check(t.Context(), pool, Default), ErrForeign, name)
		assert.Equalf(t, before, query[string](t, pool, shape), "%s: it, and", name)
	}
}

func TestCheckDistinguishesOutageFromBehind(t *testing.T) {
	t.Parallel()
	pool := pgtest.EmptyPool(t)
	pool.Close()
	err := Check(t.Context(), pool, Default)
	assert.Truef(t, err != nil && !errors.Is(err, ErrBehind) && !errors.Is(err, ErrNewer), "got %v", err)
	assert.Error(t, errOf(Migrate(t.Context(), pool, Default)), "migrated nothing")
}

func TestMigrateOtherSchemaName(t *testing.T) {
	t.Parallel()
	const name = "other_1"
	pool := migrated(t, name)
	n, err := Migrate(t.Context(), pool, name)
	assert.Truef(t, err == nil && n == 0, "again: applied %d: %v", n, err)
	assert.ErrorIs(t, Check(t.Context(), pool, Default), ErrBehind, "the default schema")
	assert.False(t, query[bool](t, pool, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'pawl')"), "something made the schema pawl")
	got := query[string](t, pool, `SELECT coalesce(string_agg(proname, ', '), '') FROM pg_proc
		WHERE pronamespace = $1::regnamespace AND prosrc LIKE '%pawl.%'`, name)
	assert.Equal(t, "", got, "these functions still name the schema pawl")
	// Two schemas side by side with the same tables.
	n, err = Migrate(t.Context(), pool, Default)
	require.Truef(t, err == nil && n == len(Migrations), "beside it: applied %d: %v", n, err)
	tables := `SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class WHERE relnamespace = $1::regnamespace`
	if got, want := query[string](t, pool, tables, name), query[string](t, pool, tables, Default); got != want || want == "" {
		t.Errorf("got %s, want %s", got, want)
	}
	// The trigger of the other schema numbers its own rows.
	provisional := row{"position": "-1", "at": "now()"}
	require.NoError(t, errOf(pool.Exec(t.Context(), In(name, "INSERT INTO {pawl}.outbox "+validRows["outbox"].insert(provisional)+
		"; INSERT INTO {pawl}.audit "+validRows["audit"].insert(provisional)), pgx.QueryExecModeSimpleProtocol)))
	assert.Equal(t, int64(1), query[int64](t, pool, "SELECT position FROM other_1.audit"), "position")
	assert.Equal(t, int64(0), query[int64](t, pool, "SELECT count(*) FROM pawl.log"), "the log of the schema pawl moved")
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

	assert.ErrorIs(t, Check(t.Context(), pool, Default), ErrBehind, "before")
	n, err := Migrate(t.Context(), pool, Default)
	e, ok := errors.AsType[*pgconn.PgError](err)
	assert.Truef(t, ok && e.Code == "22012" && n == 1, "applied %d: %v; want the good one and the division by zero of the bad one", n, err)
	assert.Falsef(t, err != nil && !strings.Contains(err.Error(), fmt.Sprintf("migration %04d_bad", next+1)),
		"%v does not name the migration", err)
	assert.Equal(t, next, query[int](t, pool, "SELECT max(number) FROM pawl.migration"), "the database is at")
	assert.True(t, !query[bool](t, pool, "SELECT to_regclass('pawl.half') IS NOT NULL") &&
		query[bool](t, pool, "SELECT to_regclass('pawl.good') IS NOT NULL"), "half of the bad migration stayed, or the good one went with it")
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
	require.NoError(t, err)
	found := 0
	var name, text string
	_, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		found++
		for _, m := range Migrations {
			if strings.Contains(migrationIn(Default, m.SQL), text) {
				return nil
			}
		}
		t.Errorf("the text of pawl.%s is in no migration", name)
		return nil
	})
	require.Truef(t, err == nil && found >= 20, "%d functions: %v", found, err)
}

// A function of that name earlier in the search path fakes the server's version.
func TestServerVersionIsChecked(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"90600": "PostgreSQL 14 or newer is needed, this is 9", "130012": "PostgreSQL 14 or newer is needed, this is 13",
		"140000": "", "180001": "", "990000": ""} {
		pool := pgtest.DirectTo(t, pgtest.EmptyPool(t)) // the search path belongs to the session
		require.NoError(t, errOf(pool.Exec(t.Context(), `CREATE SCHEMA pretend;
			CREATE FUNCTION pretend.current_setting(text) RETURNS text LANGUAGE sql AS $$
			SELECT CASE $1 WHEN 'server_version_num' THEN '`+version+`' ELSE pg_catalog.current_setting($1) END $$`)))
		config := pool.Config()
		config.ConnConfig.RuntimeParams["search_path"] = "pretend, pg_catalog"
		pretender, err := pgxpool.NewWithConfig(t.Context(), config)
		require.NoError(t, err)
		_, err = Migrate(t.Context(), pretender, Default)
		pretender.Close()
		if want == "" {
			assert.NoError(t, err, version)
		} else {
			assert.ErrorContains(t, err, want, version)
		}
		made := query[bool](t, pool, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'pawl')")
		assert.Equalf(t, want == "", made, "version %s: the schema is made", version)
	}
}

func TestMigrationsAreNumbered(t *testing.T) {
	t.Parallel()
	for i, m := range Migrations {
		assert.Truef(t, m.Number == i+1 && m.Name != "" && m.SQL != "", "migration %d is %d %q", i+1, m.Number, m.Name)
	}
	for name, files := range map[string]fstest.MapFS{
		"a gap":      {"migrations/0001_a.sql": {}, "migrations/0003_c.sql": {}},
		"a double":   {"migrations/0001_a.sql": {}, "migrations/0001_b.sql": {}},
		"no number":  {"migrations/first.sql": {}},
		"not from 1": {"migrations/0002_b.sql": {}},
	} {
		func() {
			defer func() {
				assert.NotNilf(t, recover(), "%s was taken", name)
			}()
			mustLoad(files)
		}()
	}
}
