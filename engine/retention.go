package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/engine/internal/retention"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/schema"
)

func (e *Engine) newRetention(in func(string) string, node string) *retention.Runner {
	c := e.config
	return retention.New(retention.Config{
		Pool: c.Pool, In: in, Node: node, Clock: e.clock, Busy: e.utilization(), Workflows: e.registry.Names(), Replay: c.Replay,
		Outbox: c.Retention.Outbox, Batch: c.Retention.Batch, Off: c.Retention.Off, Log: c.Log,
	})
}

// utilization tells, each time it is asked, how much of the time since the last
// question a committer was at work, from 0 to 1.
func (e *Engine) utilization() func() float64 {
	asked, worked := time.Now(), time.Duration(0)
	return func() float64 {
		now, working := time.Now(), e.pipeline.Stats().Working
		share := float64(working-worked) / float64(now.Sub(asked))
		asked, worked = now, working
		return min(share, 1)
	}
}

// Retention tells which node does retention, and what there is of the outbox and of
// the history of commands. Error: Unavailable.
func (a *Admin) Retention(ctx context.Context) (inspect.Retention, error) {
	s, err := a.e.retention.Standing(ctx)
	if err != nil {
		return s, store.ReadError("standing of retention", err)
	}
	return s, nil
}

// RetentionStats are the counters of what this node did for retention.
func (a *Admin) RetentionStats() retention.Stats { return a.e.retention.Stats() }

// makePartitions makes the partitions that this node's clock will soon need.
func (e *Engine) makePartitions(ctx context.Context) error {
	if _, err := e.config.Pool.Exec(ctx, schema.In(e.config.Schema, "SELECT {pawl}.make_partitions($1)"), e.clock.Now()); err != nil {
		return fmt.Errorf("make the partitions of the outbox: %w", err)
	}
	return nil
}
