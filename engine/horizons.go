package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

const (
	// newHorizonsSQL writes those down of which nobody has said anything yet, in one
	// order on every node. Parameters: workflows, and in microseconds how long
	// answers, tombstones (NULL: for ever) and history (NULL: for ever; 0: none) are kept.
	newHorizonsSQL = `
INSERT INTO pawl.horizon (workflow, replay, tombstone, history, history_kept)
SELECT u.workflow, u.replay * interval '1 microsecond', u.tombstone * interval '1 microsecond',
	u.history IS DISTINCT FROM 0, nullif(u.history, 0) * interval '1 microsecond'
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS u(workflow, replay, tombstone, history)
ORDER BY u.workflow ON CONFLICT (workflow) DO NOTHING`

	// knownHorizonsSQL locks and reads what is written down. Parameter: workflows.
	knownHorizonsSQL = `
SELECT workflow, (extract(epoch FROM replay) * 1000000)::bigint, (extract(epoch FROM tombstone) * 1000000)::bigint,
	CASE WHEN history THEN (extract(epoch FROM history_kept) * 1000000)::bigint ELSE 0 END
FROM pawl.horizon WHERE workflow = ANY ($1) ORDER BY workflow FOR NO KEY UPDATE`

	// growHorizonsSQL writes one down. Parameters: as those of newHorizonsSQL.
	growHorizonsSQL = `
UPDATE pawl.horizon SET replay = $2::bigint * interval '1 microsecond', tombstone = $3::bigint * interval '1 microsecond',
	history = $4::bigint IS DISTINCT FROM 0, history_kept = nullif($4::bigint, 0) * interval '1 microsecond' WHERE workflow = $1`
)

// recordHorizons tells the database, for retention and for callers that speak
// only SQL. What is written there only grows, whatever version says it: how long a
// key is refused is taken from there when its answer expires, so a node that says
// less than another, if only for a moment, would break what that one has promised.
func (r *registry) recordHorizons(ctx context.Context, c Config) error {
	names, own := r.Names(), map[string]workflow.Horizons{}
	replays, tombstones, histories := make([]int64, len(names)), make([]*int64, len(names)), make([]*int64, len(names))
	for i, name := range names {
		h := r.Horizons(name)
		replays[i], tombstones[i], histories[i] = h.Replay.Microseconds(), microseconds(h.Tombstone), microseconds(h.History)
		own[name] = workflow.Horizons{Replay: durationOf(&replays[i]), Tombstone: durationOf(tombstones[i]), History: durationOf(histories[i])}
	}
	err := pgx.BeginTxFunc(ctx, c.Pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, schema.In(c.Schema, newHorizonsSQL), names, replays, tombstones, histories); err != nil {
			return err
		}
		found, err := tx.Query(ctx, schema.In(c.Schema, knownHorizonsSQL), names)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(found, scanHorizons)
		if err != nil {
			return err
		}
		for _, known := range list {
			if err := known.grow(ctx, tx, c, own[known.workflow]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record horizons: %w", err)
	}
	return nil
}

// recorded are the horizons of a workflow that are written down, without the bounds
// of what a command may ask for.
type recorded struct {
	workflow string
	workflow.Horizons
}

func scanHorizons(row pgx.CollectableRow) (k recorded, err error) {
	var replay, tombstone, history *int64
	err = row.Scan(&k.workflow, &replay, &tombstone, &history)
	k.Replay, k.Tombstone, k.History = durationOf(replay), durationOf(tombstone), durationOf(history)
	return k, err
}

// grow writes down where own, which a node says, is more.
func (k recorded) grow(ctx context.Context, tx pgx.Tx, c Config, own workflow.Horizons) error {
	grown := workflow.Horizons{Replay: max(k.Replay, own.Replay), Tombstone: max(k.Tombstone, own.Tombstone),
		History: max(k.History, own.History)}
	if grown != k.Horizons {
		c.Log.Warn("the horizons of a workflow grew, because this node says more than what was written down; "+
			"keys that are tombstones already stay as long as they did",
			"workflow", k.workflow, "was", told(k.Horizons), "is", told(grown))
		if _, err := tx.Exec(ctx, schema.In(c.Schema, growHorizonsSQL), k.workflow,
			grown.Replay.Microseconds(), microseconds(grown.Tombstone), microseconds(grown.History)); err != nil {
			return err
		}
	}
	if grown != own {
		c.Log.Warn("this node says less of the horizons of a workflow than what is written down, which holds; "+
			"docs/operations.md tells how to make them shorter",
			"workflow", k.workflow, "this node", told(own), "is", told(grown))
	}
	return nil
}

// told is horizons as the log says them.
func told(h workflow.Horizons) string {
	say := func(d time.Duration) string {
		if d == workflow.Forever {
			return "forever"
		}
		return d.String()
	}
	return fmt.Sprintf("replay %s, tombstone %s, history %s", say(h.Replay), say(h.Tombstone), say(h.History))
}

// microseconds is nil for ever.
func microseconds(d time.Duration) *int64 {
	if d == workflow.Forever {
		return nil
	}
	n := d.Microseconds()
	return &n
}

// durationOf is the inverse. What a Duration cannot hold is for ever too.
func durationOf(n *int64) time.Duration {
	if n == nil || *n > workflow.Forever.Microseconds() {
		return workflow.Forever
	}
	return time.Duration(*n) * time.Microsecond
}
