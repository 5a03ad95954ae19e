package engine

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/engine/internal/retention"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

func (e *Engine) newRetention(in func(string) string, node string) *retention.Runner {
	c := e.config
	asked, worked := time.Now(), time.Duration(0)
	return retention.New(retention.Config{
		Pool: c.Pool, In: in, Node: node, Clock: e.clock, Busy: func() float64 {
			now, working := time.Now(), e.pipeline.Stats().Working
			share := float64(working-worked) / float64(now.Sub(asked))
			asked, worked = now, working
			return min(share, 1)
		}, Workflows: e.registry.Names(), Replay: c.Replay,
		Outbox: c.Retention.Outbox, Batch: c.Retention.Batch, Off: c.Retention.Off, Log: c.Log,
	})
}

// Retention tells which node does retention, and what there is of the outbox and of the history of commands. Error: Unavailable.
func (a *Admin) Retention(ctx context.Context) (inspect.Retention, error) {
	s, err := a.e.retention.Standing(ctx)
	if err != nil {
		return s, store.ReadError("standing of retention", err)
	}
	return s, nil
}

// RetentionStats are the counters of what this node did for retention.
func (a *Admin) RetentionStats() retention.Stats { return a.e.retention.Stats() }
