package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
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
		if _, err := tx.Exec(ctx, schema.In(c.Schema, store.NewHorizonsSQL), names, replays, tombstones, histories); err != nil {
			return err
		}
		found, err := tx.Query(ctx, schema.In(c.Schema, store.KnownHorizonsSQL), names)
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
		if _, err := tx.Exec(ctx, schema.In(c.Schema, store.GrowHorizonsSQL), k.workflow,
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

// durationOf is the inverse. A value that a Duration cannot hold means no limit.
func durationOf(n *int64) time.Duration {
	if n == nil || *n > workflow.Forever.Microseconds() {
		return workflow.Forever
	}
	return time.Duration(*n) * time.Microsecond
}
