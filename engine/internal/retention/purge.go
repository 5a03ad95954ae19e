package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

const (
	firstBatch = 500
	smallest   = 50
	target     = 100 * time.Millisecond // of a batch, while the pipeline is idle
	longest    = 2 * time.Second        // of a pause between batches
	patience   = time.Hour              // after which it gives way to nobody
)

// purge runs one batch, and returns when the next is due. The same transaction extends the lease, so a node that has lost it changes
// nothing.
func (r *Runner) purge(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var expired, forgotten, abandoned, archived int64
	var passed *string
	var next *time.Time
	now, begun := r.config.Clock.Now(), time.Now()
	err := r.config.Pool.QueryRow(ctx, r.config.In(purgeSQL), pgx.QueryExecModeExec, r.token, r.lease(), r.batch, now,
		r.config.Replay.Microseconds(), r.config.Workflows, r.passed, r.since).Scan(&expired, &forgotten, &abandoned, &archived, &passed, &next)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, errLost
	}
	took := time.Since(begun)
	if err != nil {
		if took > target { // it may have been too much at once
			r.batch = fit(r.batch, took, 0, r.config.Batch)
		}
		return 0, fmt.Errorf("purge: %w", err)
	}
	r.passed = passed
	// No existing key is due before the next one. So the next batch need not read the index from its beginning, where the entries of purged
	// keys remain until a vacuum, which an old transaction can delay. A key that appears later and is due before, such as one of a slow
	// commit, is found when the partitions are tended.
	r.since = now
	if next != nil && next.Before(now) {
		r.since = *next
	}
	r.stats.count(func(s *Stats) {
		s.Batches++
		s.Expired, s.Forgotten = s.Expired+expired, s.Forgotten+forgotten
		s.Abandoned, s.Archived = s.Abandoned+abandoned, s.Archived+archived
	})
	if full := max(expired, forgotten, abandoned) >= int64(r.batch); full {
		if r.behind.IsZero() {
			r.behind = begun
		}
		busy := yielding(r.config.Busy(), begun.Sub(r.behind))
		r.batch = fit(r.batch, took, busy, r.config.Batch)
		return pause(took, busy), nil
	}
	r.behind = time.Time{}
	switch {
	case passed != nil: // there are more scheduled commands
		return min(lull, r.config.Every), nil
	case next == nil:
		return r.config.Every, nil
	}
	return min(max(next.Sub(now), lull), r.config.Every), nil
}

// yielding returns how much to slow down for a busy pipeline: less, the longer the backlog has existed. Otherwise the tables could grow
// without limit.
func yielding(busy float64, behind time.Duration) float64 {
	return min(max(busy, 0), 1) * (1 - min(float64(behind)/float64(patience), 1))
}

// fit is the size of the next batch, after one that took so long: the busier the pipeline, the shorter it is to be. A batch that met a slow
// moment does not change it all at once.
func fit(batch int, took time.Duration, busy float64, most int) int {
	want := float64(target) * (1 - 0.8*busy)
	factor := min(max(want/float64(max(took, time.Millisecond)), 0.5), 2)
	return max(min(int(float64(batch)*factor), most), min(smallest, most))
}

// pause is how long to leave the database alone after a batch that took so long:
// as long as that while the pipeline is idle, ten times as long when it is busy.
func pause(took time.Duration, busy float64) time.Duration {
	return min(time.Duration(float64(took)*(1+9*busy)), longest)
}

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
	err := r.config.Pool.QueryRow(ctx, r.config.In(store.GiveUpSQL), pgx.QueryExecModeExec, r.config.Clock.Now(),
		r.config.Replay.Microseconds(), r.config.Workflows, after, r.batch, string(decide.AbandonedAnswer()), decide.LateScope).
		Scan(&r.reached, &ended)
	if err != nil {
		return fmt.Errorf("give up work: %w", err)
	}
	r.stats.count(func(s *Stats) { s.Abandoned += ended })
	return nil
}
