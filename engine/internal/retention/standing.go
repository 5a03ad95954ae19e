package retention

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/inspect"
)

// Stats are counters of this node since its start.
type Stats struct {
	Batches   int64 // transactions that looked for keys that are due
	Expired   int64 // answers that became tombstones, or were forgotten at once
	Forgotten int64 // tombstones that were deleted
	Abandoned int64 // commands that failed because nobody went on with them
	Archived  int64 // commands that went to the history
	Dropped   int64 // partitions
	Failures  int64 // turns that failed, and were tried again
}

// counters count a batch at once, so that its numbers belong together.
type counters struct {
	mu sync.Mutex
	Stats
}

func (c *counters) count(what func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.Stats)
}

// Stats reads the counters.
func (r *Runner) Stats() (now Stats) {
	r.stats.count(func(s *Stats) { now = *s })
	return now
}

// Standing tells who does retention for the database, and what waits. It needs no
// started runner.
func (r *Runner) Standing(ctx context.Context) (inspect.Retention, error) {
	s := inspect.Retention{KeepEvents: int64(r.config.Outbox / time.Second)}
	err := r.config.Pool.QueryRow(ctx, r.sql.leader, pgx.QueryExecModeExec).Scan(&s.Node, &s.Since, &s.Until)
	if err != nil {
		return s, fmt.Errorf("read who does retention: %w", err)
	}
	if err := r.config.Pool.QueryRow(ctx, "SELECT ("+r.sql.oldest+")", pgx.QueryExecModeExec).Scan(&s.Next); err != nil {
		return s, fmt.Errorf("read what is due next: %w", err)
	}
	list, err := r.partitions(ctx)
	if err == nil {
		err = r.judge(ctx, list, r.config.Clock.Now())
	}
	for i := range list {
		s.Partitions = append(s.Partitions, list[i].Partition)
	}
	return s, err
}

// Leaders tells what one node does for all, and which node that is. It needs no started runner.
func (r *Runner) Leaders(ctx context.Context) (nodes map[string]string, err error) {
	found, err := r.config.Pool.Query(ctx, r.sql.leaders, pgx.QueryExecModeExec)
	if err != nil {
		return nil, fmt.Errorf("read who leads: %w", err)
	}
	nodes = map[string]string{}
	var what, node string
	_, err = pgx.ForEachRow(found, []any{&what, &node}, func() error { nodes[what] = node; return nil })
	return nodes, err
}
