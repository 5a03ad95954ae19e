package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/decide"
)

// giveUp looks once for work that nobody knows.
func (r *Runner) giveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	after := time.Time{}
	if r.reached != nil {
		after = *r.reached
	}
	r.reached = nil // should it fail, the next look begins anew
	var ended int64
	err := r.config.Pool.QueryRow(ctx, r.sql.giveUp, pgx.QueryExecModeExec, r.config.Clock.Now(),
		r.config.Replay.Microseconds(), r.config.Workflows, after,
		r.batch, string(decide.AbandonedAnswer()), decide.LateScope).
		Scan(&r.reached, &ended)
	if err != nil {
		return fmt.Errorf("give up work: %w", err)
	}
	r.stats.count(func(s *Stats) { s.Abandoned += ended })
	return nil
}
