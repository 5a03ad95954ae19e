package engine_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/workflow"
)

func horizonRow(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return query[string](t, pool, `SELECT replay || ' ' || coalesce(tombstone::text, 'forever') || ' ' || history || ' ' || coalesce(history_kept::text, 'forever')
		FROM pawl.horizon WHERE workflow = 'letter'`)
}

func TestANodeWritesDownTheHorizonsOfTheNewestVersion(t *testing.T) {
	t.Parallel()
	pool := database(t)
	const day = 24 * time.Hour
	newEngine(t, pool, with(letters(1, workflow.Horizons{}, nil)))
	if got := horizonRow(t, pool); got != "24:00:00 720:00:00 false forever" {
		t.Errorf("got %s", got)
	}
	newEngine(t, pool, with(letters(1, workflow.Horizons{Replay: 2 * day, Tombstone: workflow.Forever, History: 90 * day}, nil)))
	if got := horizonRow(t, pool); got != "48:00:00 forever true 2160:00:00" {
		t.Errorf("changed under one version: got %s", got)
	}
	newEngine(t, pool, with(letters(2, workflow.Horizons{Replay: day, History: workflow.Forever}, nil)))
	row := query[string](t, pool, "SELECT xmin::text FROM pawl.horizon WHERE workflow = 'letter'")
	if got := horizonRow(t, pool); got != "24:00:00 720:00:00 true forever" {
		t.Errorf("a newer version: got %s", got)
	}
	newEngine(t, pool, with(letters(1, workflow.Horizons{Replay: 3 * day}, nil))) // a node that has not heard of it
	newEngine(t, pool, with(letters(2, workflow.Horizons{Replay: day, History: workflow.Forever}, nil)))
	if got := query[string](t, pool, "SELECT xmin::text FROM pawl.horizon WHERE workflow = 'letter'"); got != row {
		t.Errorf("it was written again: %s", horizonRow(t, pool))
	}
}
