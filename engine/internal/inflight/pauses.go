package inflight

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/store"
)

// pauses is what the poller knows about pauses of workflows. It belongs to the poller goroutine.
//
// Work that becomes due during a pause is deferred when a poll finds it, so that later polls do not read it. The end of an instance's pause
// makes its work due in the same transaction. After the pause of a workflow, the next poller makes the work due, a batch at a time: there
// may be a lot of it, and the node that began may have stopped.
type pauses struct {
	paused [][2]string             // the workflows, each with its tenant before it, as the newest poll has seen them
	ended  map[[2]string]time.Time // those whose commands are to be due again, and since when they were
}

// seen takes notice of a poll.
func (p *pauses) seen(seen *store.PollResult) {
	if p.ended == nil {
		p.ended = map[[2]string]time.Time{}
	}
	for _, w := range p.paused {
		if !slices.Contains(seen.Paused, w) {
			p.ended[w] = time.Time{}
		}
	}
	for _, w := range seen.Ended {
		p.ended[w] = time.Time{}
	}
	p.paused = seen.Paused
}

// park defers the candidates that are paused. It reports whether any were deferred. The others stay due: another transaction has locked
// them, or the pause has ended.
func (r *Runner) park(ctx context.Context, now time.Time, found []store.Candidate) (parked bool) {
	type kind struct {
		tenant   string
		workflow bool
	}
	kinds := map[kind]*store.Keys{}
	for _, c := range found {
		if c.Pause == "" {
			continue
		}
		k := kind{c.Tenant, strings.HasPrefix(c.Pause, store.PausedWorkflow)}
		if kinds[k] == nil {
			kinds[k] = &store.Keys{}
		}
		kinds[k].Add(c.Ref, c.Attempt)
	}
	if len(kinds) == 0 {
		return false
	}
	var some int64
	err := r.send(ctx, func(b *pgx.Batch) {
		for k, keys := range kinds {
			r.sql.Park(b, k.tenant, now, keys, k.workflow, func(n int64) { some += n })
		}
	})
	if err != nil {
		r.config.Log.Warn("cannot set aside what a pause holds", "error", err)
		return false
	}
	r.stats.count(func(s *Stats) { s.Parked += some })
	return some > 0
}

// resumePaused makes due what waits for pauses of workflows that have ended, as fast as
// it is decided. It reports whether there is something to poll for now.
func (r *Runner) resumePaused(ctx context.Context, q store.PollRequest) (more bool) {
	p := &r.poller.pauses
	if q.Scheduled == 0 || len(p.ended) == 0 {
		return false
	}
	done := map[[2]string]time.Time{}
	err := r.send(ctx, func(b *pgx.Batch) {
		for w, since := range p.ended {
			r.sql.Unpark(b, w[0], w[1], q.Now, since, resumeBatch, func(n int, last time.Time) {
				more = more || n > 0
				if n == resumeBatch {
					done[w] = last
				}
			})
		}
	})
	if err != nil {
		r.config.Log.Warn("cannot resume what a pause held", "error", err)
		return false
	}
	p.ended = done
	return more
}
