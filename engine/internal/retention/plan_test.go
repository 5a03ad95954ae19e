package retention_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine/internal/retention"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// read counts the rows that a statement reads of tables and their indexes.
func read(t testing.TB, pool *pgxpool.Pool, sql string) (rows float64) {
	t.Helper()
	plan := ask[[]map[string]any](t, pool, "EXPLAIN (ANALYZE, FORMAT JSON) "+sql)
	var count func(node map[string]any)
	count = func(node map[string]any) {
		if node["Relation Name"] != nil {
			removed, _ := node["Rows Removed by Filter"].(float64)
			rows += (node["Actual Rows"].(float64) + removed) * node["Actual Loops"].(float64)
		}
		below, _ := node["Plans"].([]any)
		for _, n := range below {
			count(n.(map[string]any))
		}
	}
	count(plan[0]["Plan"].(map[string]any))
	return rows
}

// There are as many weeks past their age as a sink that is paused is behind, and
// many tenants. Every scrape asks what holds them.
func TestWhatHoldsAWeekIsFoundByIndexAndThenNothingMoreIsRead(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	const tenants, events = 1000, 20
	at := time.Date(2040, 1, 2, 0, 0, 0, 0, time.UTC)
	exec(t, pool, "SELECT pawl.make_partition('outbox', $1)", at)
	exec(t, pool, `INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at)
		SELECT 't' || lpad(n::text, 4, '0'), p, 'e', 0, 'w', gen_random_uuid(), 1, 't', 's', $1 FROM generate_series(1, $2::int) AS n, generate_series(1, $3::int) AS p`,
		at, tenants, events)
	exec(t, pool, "INSERT INTO pawl.outbox_sink (name) SELECT 's' || n FROM generate_series(1, 3) AS n")
	sql := fmt.Sprintf(retention.HeldSQL, "pawl.outbox_2040w01")
	check := func(what, want string, most float64) {
		t.Helper()
		if got := ask[string](t, pool, sql); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if got := read(t, pool, sql); got > most {
			t.Errorf("%s: %v rows are read, more than %v", what, got, most)
		}
	}
	for _, analyzed := range []string{"as it grew", "analyzed"} {
		check("a sink that has got nothing, "+analyzed, `sink "s1" is at position 0 of tenant "t0001"`, 10)
		exec(t, pool, "ANALYZE")
	}
	exec(t, pool, `INSERT INTO pawl.outbox_cursor (tenant, sink, position, updated_at)
		SELECT 't' || lpad(n::text, 4, '0'), 's' || s, 20, now() FROM generate_series(1, 1000) AS n, generate_series(1, 3) AS s`)
	exec(t, pool, "UPDATE pawl.outbox_cursor SET position = 19 WHERE (tenant, sink) = ('t1000', 's2')")
	exec(t, pool, "ANALYZE")
	// The first and the newest event of each tenant, each sink and its cursor.
	check("one sink of one tenant", `sink "s2" is at position 19 of tenant "t1000"`, tenants*(2+3+3)+10)
}
