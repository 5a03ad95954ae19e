package relay

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/schema"
)

// There are as many expired weeks as a paused sink is behind, and many tenants. Every scrape asks
// what holds the weeks.
func TestHoldsUsesIndexesAndStopsEarly(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	const tenants, events = 1000, 20
	execute := func(sql string, args ...any) {
		t.Helper()
		_, err := pool.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	at := time.Date(2040, 1, 2, 0, 0, 0, 0, time.UTC)
	execute("SELECT pawl.make_partition('outbox', $1)", at)
	execute(`INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
		SELECT 't' || lpad(n::text, 4, '0'), p, 'e', 0, 'w', gen_random_uuid(), 1, 't', 's', $1
		FROM generate_series(1, $2::int) AS n, generate_series(1, $3::int) AS p`,
		at, tenants, events)
	execute("INSERT INTO pawl.outbox_sink (name) SELECT 's' || n FROM generate_series(1, 3) AS n")
	sql := fmt.Sprintf(heldSQL, "pawl.outbox_2040w01")
	holds := func() string {
		t.Helper()
		why, err := Holds(t.Context(), pool, schema.For(schema.Default), "outbox_2040w01")
		require.NoError(t, err)
		return why
	}
	check := func(what, want string, most float64) {
		t.Helper()
		assert.Equal(t, want, holds(), what)
		got := pgtest.RowsRead(t, pool, sql)
		assert.Truef(t, !(got > most), "%s: %v rows are read, more than %v", what, got, most)
	}
	for _, analyzed := range []string{"as it grew", "analyzed"} {
		check("a sink that has got nothing, "+analyzed, `sink "s1" is at position 0 of tenant "t0001"`, 10)
		execute("ANALYZE")
	}
	execute(`INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at)
		SELECT 't' || lpad(n::text, 4, '0'), 's' || s, 20, now() FROM generate_series(1, 1000) AS n, generate_series(1, 3) AS s`)
	execute("UPDATE pawl.outbox_cursor SET position = 19 WHERE (tenant, sink) = ('t1000', 's2')")
	execute("ANALYZE")
	// The first and the newest event of each tenant, each sink and its cursor.
	check("one sink of one tenant", `sink "s2" is at position 19 of tenant "t1000"`, tenants*(2+3+3)+10)
}
