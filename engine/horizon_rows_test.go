package engine_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/testkit/testlog"
	"github.com/pawlhq/pawl/workflow"
)

func horizonRow(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	return query[string](t, pool, `SELECT replay || ' ' || coalesce(tombstone::text,
		'forever') || ' ' || history || ' ' || coalesce(history_kept::text, 'forever')
		FROM pawl.horizon WHERE workflow = 'letter'`)
}

func TestRecordedRetentionGrows(t *testing.T) {
	t.Parallel()
	pool := database(t)
	const day = 24 * time.Hour
	for _, node := range []struct {
		version int
		says    workflow.Horizons
		want    string
		grew    bool
		less    bool
	}{
		{1, workflow.Horizons{}, "24:00:00 720:00:00 false forever", false, false},
		{1, workflow.Horizons{Replay: 2 * day, Tombstone: 40 * day}, "48:00:00 960:00:00 false forever", true, false},
		{1, workflow.Horizons{Replay: day, Tombstone: workflow.Forever, History: 90 * day}, "48:00:00 forever true 2160:00:00", true, true},
		{2, workflow.Horizons{Replay: day, Tombstone: time.Minute}, "48:00:00 forever true 2160:00:00", false, true},
		{1, workflow.Horizons{Replay: 3 * day, History: workflow.Forever}, "72:00:00 forever true forever", true, true}, // an old node restarts
		{2, workflow.Horizons{Replay: 3 * day, Tombstone: workflow.Forever, History: workflow.Forever}, "72:00:00 forever true forever", false,
			false},
	} {
		var log testlog.Log
		before := query[string](t, pool, "SELECT coalesce((SELECT xmin::text FROM pawl.horizon WHERE workflow = 'letter'), 'none')")
		newEngine(t, pool, with(letters(node.version, node.says, nil)), func(c *engine.Config) { c.Log = slog.New(&log) })
		assert.Equalf(t, node.want, horizonRow(t, pool), "%+v", node)
		if grew, less := log.Count("the horizons of a workflow grew") == 1,
			log.Count("this node says less of the horizons") == 1; grew != node.grew || less != node.less {
			t.Errorf("%+v: the log says %q", node, log.List())
		}
		after := query[string](t, pool, "SELECT xmin::text FROM pawl.horizon WHERE workflow = 'letter'")
		assert.Falsef(t, before != "none" && (before != after) != node.grew, "%+v: it was %s and is %s", node, before, after)
	}

	// A person makes them shorter, and no node that says the same changes that.
	exec(t, pool, "UPDATE pawl.horizon SET replay = '1 day', tombstone = '1 minute', history = false, history_kept = NULL WHERE workflow = "+
		"'letter'")
	newEngine(t, pool, with(letters(2, workflow.Horizons{Replay: day, Tombstone: time.Minute}, nil)))
	got := horizonRow(t, pool)
	assert.Falsef(t, got != "24:00:00 00:01:00 false forever" && got != "1 day 00:01:00 false forever", "got %s", got)
}

func TestATransientEngineWritesNoHorizons(t *testing.T) {
	t.Parallel()
	pool := database(t)
	newEngine(t, pool, with(letters(1, hourly, nil)))
	newEngine(t, pool, with(letters(1, workflow.Horizons{Tombstone: workflow.Forever}, nil)), func(c *engine.Config) { c.Transient = true })
	assert.Equal(t, "01:00:00 02:00:00 false forever", horizonRow(t, pool))
}

// One that says less, and comes by for a moment, as an old one does in a roll-out.
func TestRetention_IsNotShortened(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	stays := newEngine(t, pool, with(letters(1, workflow.Horizons{Replay: time.Hour, Tombstone: workflow.Forever}, nil)), clock.set)
	submit(t, stays, written("k", "x"))
	passes := newEngine(t, pool, with(letters(1, workflow.Horizons{Replay: time.Minute, Tombstone: time.Minute}, nil)), clock.set)
	passes.Stop(t.Context())
	for range 3 {
		clock.skip(1000 * time.Hour)
		retain(t, pool, clock.Now())
	}
	wantExpired(t, pool, stays, written("k", "x"))
}
