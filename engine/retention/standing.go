package retention

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/transitions"
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

type counters struct {
	batches, expired, forgotten, abandoned, archived, dropped, failures atomic.Int64
}

func (c *counters) purged(expired, forgotten, abandoned, archived int64) {
	c.batches.Add(1)
	c.expired.Add(expired)
	c.forgotten.Add(forgotten)
	c.abandoned.Add(abandoned)
	c.archived.Add(archived)
}

// Stats reads the counters.
func (r *Runner) Stats() Stats {
	c := &r.stats
	return Stats{Batches: c.batches.Load(), Expired: c.expired.Load(), Forgotten: c.forgotten.Load(), Abandoned: c.abandoned.Load(),
		Archived: c.archived.Load(), Dropped: c.dropped.Load(), Failures: c.failures.Load()}
}

// Standing tells who does retention for the database, and what waits. It needs no
// started runner.
func (r *Runner) Standing(ctx context.Context) (transitions.Retention, error) {
	var s transitions.Retention
	err := r.config.Pool.QueryRow(ctx, r.sql.duty, pgx.QueryExecModeExec).Scan(&s.Node, &s.Since, &s.Until)
	if err != nil {
		return s, fmt.Errorf("read who does retention: %w", err)
	}
	if err := r.config.Pool.QueryRow(ctx, "SELECT ("+r.sql.oldest+")", pgx.QueryExecModeExec).Scan(&s.Next); err != nil {
		return s, fmt.Errorf("read what is due next: %w", err)
	}
	list, err := r.partitions(ctx)
	if err == nil {
		err = r.judge(ctx, list, r.config.Now())
	}
	for i := range list {
		s.Partitions = append(s.Partitions, list[i].Partition)
	}
	return s, err
}
