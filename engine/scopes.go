package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/internal/kernel/loop"
	"github.com/pawlhq/pawl/internal/kernel/store"
)

const (
	// recordEvery is the interval of additions to the table. A killed node loses the counts of at most that time.
	recordEvery = time.Minute
	// forgetEvery is the interval of removals of old counts.
	forgetEvery = time.Hour
	// maxUnrecorded bounds the scopes that are counted one by one while the table cannot be written.
	maxUnrecorded = 5000
	recordBudget  = 5 * time.Second
	recordAtStop  = time.Second
)

// scopeRecorder adds the answers of attempts, by scope, to the database. It uses one statement for many attempts, because a replay must
// not write.
type scopeRecorder struct {
	*loop.Loop
	rows *store.Scopes
	take func() []inspect.ScopeCount // returns the attempts since its last call
	log  *slog.Logger

	unrecorded []inspect.ScopeCount // from failed writes
	forgotten  time.Time
}

func newScopeRecorder(rows *store.Scopes, take func() []inspect.ScopeCount, log *slog.Logger) *scopeRecorder {
	return &scopeRecorder{Loop: loop.New(), rows: rows, take: take, log: log}
}

// start records until Stop, which records the remaining attempts.
func (r *scopeRecorder) start() {
	r.Loop.Start(func(ctx context.Context) time.Duration { r.record(ctx); return recordEvery }, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, recordAtStop)
		defer cancel()
		r.record(ctx)
	})
}

// record writes the attempts since the last call. After an error it keeps them for the next call; if the commit succeeded although its
// answer was lost, they are counted twice.
func (r *scopeRecorder) record(ctx context.Context) {
	r.unrecorded = inspect.MergeScopes(r.unrecorded, r.take(), maxUnrecorded)
	if len(r.unrecorded) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordBudget)
	defer cancel()
	if err := r.rows.Add(ctx, r.unrecorded); err != nil {
		r.log.Warn("attempts by scope could not be recorded; the node tries again in a minute", "error", err)
		return
	}
	r.unrecorded = nil
	if time.Since(r.forgotten) < forgetEvery {
		return
	}
	if err := r.rows.Forget(ctx); err != nil {
		r.log.Warn("old attempts by scope could not be removed; the node tries again in a minute", "error", err)
		return
	}
	r.forgotten = time.Now()
}
