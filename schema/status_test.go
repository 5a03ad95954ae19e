package schema

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

func statusOf(t *testing.T, pool *pgxpool.Pool, name string) Status {
	t.Helper()
	s, err := StatusOf(t.Context(), pool, name)
	require.NoError(t, err)
	return s
}

func TestStatusListsAppliedAndPending(t *testing.T) {
	t.Parallel()
	pool := pgtest.EmptyPool(t)
	if s := statusOf(t, pool, Default); s.Version() != 0 || len(s.Pending) != len(Migrations) || !errors.Is(s.Err(), ErrBehind) {
		t.Errorf("of an empty database: version %d, %d pending, %v", s.Version(), len(s.Pending), s.Err())
	}
	require.NoError(t, errOf(Migrate(t.Context(), pool, Default)))
	s := statusOf(t, pool, Default)
	assert.Truef(t, s.Version() == len(Migrations) && len(s.Pending) == 0 && s.Err() == nil,
		"of a migrated one: version %d, %d pending, %v", s.Version(), len(s.Pending), s.Err())
	first := s.Applied[0]
	assert.Truef(t, first.Number == 1 && first.Name == Migrations[0].Name && !first.AppliedAt.IsZero(), "the first is %+v", first)
	require.NoError(t, errOf(pool.Exec(t.Context(), "INSERT INTO pawl.migration (number, name) VALUES ($1, 'next')", len(Migrations)+1)))
	if s := statusOf(t, pool, Default); !errors.Is(s.Err(), ErrNewer) || len(s.Pending) != 0 {
		t.Errorf("of one of a newer program: %d pending, %v", len(s.Pending), s.Err())
	}
}

// A newer program has added to the tables and declared that this one can continue.
func TestOlderProgramWorksAfterAddition(t *testing.T) {
	t.Parallel()
	pool, mine := migrated(t, Default), len(Migrations)
	add := func(number, needs int) {
		t.Helper()
		require.NoError(t, errOf(pool.Exec(t.Context(),
			"INSERT INTO pawl.migration (number, name, needs) VALUES ($1, 'next', $2)", number, needs)))
	}
	add(mine+1, mine)
	n, err := Migrate(t.Context(), pool, Default)
	if s := statusOf(t, pool, Default); err != nil || n != 0 || Check(t.Context(), pool, Default) != nil || s.Err() != nil {
		t.Errorf("applied %d: %v, %v", n, err, s.Err())
	}
	add(mine+2, mine+1) // removes what this program uses
	add(mine+3, mine)   // a later migration does not undo that
	_, err = Migrate(t.Context(), pool, Default)
	s := statusOf(t, pool, Default)
	assert.Truef(t, errors.Is(err, ErrNewer) && errors.Is(Check(t.Context(), pool, Default), ErrNewer) && errors.Is(s.Err(), ErrNewer),
		"%v, %v", err, s.Err())
}

func TestMigrationNeeds(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]int{"": 9, "-- A column.\n-- needs: 8\nALTER": 8, "x -- needs: 8": 9} {
		assert.Equalf(t, want, needsOf("0009_x.sql", 9, sql), "%q needs", sql)
	}
	defer func() {
		assert.NotNil(t, recover(), "a migration needs one that comes later")
	}()
	needsOf("0009_x.sql", 9, "-- needs: 10\n")
}

// Executing the plan manually results in the same tables as the program.
func TestPlanMatchesMigrate(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Default, "other_1"} {
		migratedHere, planned := migrated(t, name), pgtest.EmptyPool(t)
		require.NoError(t, errOf(planned.Exec(t.Context(), Plan(name, 0), pgx.QueryExecModeSimpleProtocol)))
		assert.NoError(t, Check(t.Context(), planned, name))
		want, got := relationsOf(t, migratedHere, name), relationsOf(t, planned, name)
		assert.Truef(t, got == want && got != "", "schema %s has\n%s\nnot\n%s", name, got, want)
		n, err := Migrate(t.Context(), planned, name)
		assert.Truef(t, err == nil && n == 0, "applied %d: %v", n, err)
	}
}

func relationsOf(t *testing.T, pool *pgxpool.Pool, name string) string {
	t.Helper()
	return query[string](t, pool, `SELECT coalesce(string_agg(c.relkind::text || ' ' || c.relname, E'\n' ORDER BY c.relkind, c.relname), '')
		FROM pg_class AS c WHERE c.relnamespace = to_regnamespace($1)`, name)
}
