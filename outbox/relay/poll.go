package relay

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
)

const pollGap = 20 * time.Millisecond // minimum gap between two polls

type sinkState struct {
	name     string
	token    int64
	revision int64
	paused   bool
	free     bool // no node holds its lease
	renewed  bool // this node's lease was renewed
}

// poll makes one poll. Wake-ups within the minimum gap share the next one.
func (r *Relay) poll(ctx context.Context) time.Duration {
	if err := r.pollSinks(ctx); err != nil && ctx.Err() == nil {
		r.config.Log.Warn("cannot poll the state of the sinks", "error", err)
	}
	backoff.Sleep(ctx, pollGap)
	return r.config.Every - pollGap
}

// pollSinks reads the state of the sinks and whether logs have grown, renews leases and claims free sinks. It is the only
// query of an idle node.
func (r *Relay) pollSinks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, queryBudget)
	defer cancel()
	sent := time.Now()
	held := r.held()
	list, err := r.sinkStates(ctx, held)
	if err != nil {
		return err
	}
	var free []sinkState
	for _, s := range list {
		h := held[s.name]
		switch {
		case h != nil:
			h.signals.send(func(n *signals) {
				n.lost = n.lost || s.token != h.lease.token
				n.drain = n.drain || s.paused
				n.revision = s.revision
				if s.renewed {
					n.until = sent.Add(r.config.Lease)
				}
			})
		case s.free && !s.paused:
			free = append(free, s)
		}
	}
	r.lags.loop.Wake() // for failed or postponed requests
	r.mu.Lock()
	stopping := r.ending
	r.mu.Unlock()
	if len(free) == 0 || stopping {
		return nil
	}
	return r.claim(ctx, free)
}

// sinkStates reads the state of the sinks. It replans the statement for the current tables.
func (r *Relay) sinkStates(ctx context.Context, held map[string]*holder) (list []sinkState, err error) {
	r.count(func(s *Stats) { s.Polls++ })
	names := make([]string, len(r.config.Sinks))
	tokens := make([]int64, len(names))
	begun := time.Now()
	heads := len(held) > 0 && !begun.Before(r.nextHeads)
	for i := range r.config.Sinks {
		names[i] = r.config.Sinks[i].Name
		if h := held[names[i]]; h != nil && !h.lease.lost.Load() { // lost leases are not renewed
			tokens[i] = h.lease.token
		}
	}
	rows, _ := r.config.Pool.Query(ctx, r.in(pollSQL), pgx.QueryExecModeExec, names, tokens, heads, r.config.Lease.Microseconds())
	var s sinkState
	var sum int64
	_, err = pgx.ForEachRow(rows, []any{&s.name, &s.token, &s.revision, &s.paused, &s.free, &s.renewed, &sum}, func() error {
		list = append(list, s)
		return nil
	})
	if err == nil && heads && len(list) > 0 {
		if sum != r.lags.sum.Load() {
			r.lags.moved.Store(true)
		}
		if took := time.Since(begun) + time.Duration(r.lags.took.Load()); took > r.config.Every/10 {
			r.nextHeads = begun.Add(10 * took) // limits the cost with many tenants
		}
	}
	return list, err
}

// claim claims sinks and starts to deliver to them.
func (r *Relay) claim(ctx context.Context, free []sinkState) error {
	names, tokens := make([]string, len(free)), make([]int64, len(free))
	for i, s := range free {
		names[i], tokens[i] = s.name, s.token
	}
	sent := time.Now()
	rows, _ := r.config.Pool.Query(ctx, r.in(claimSQL), pgx.QueryExecModeExec, r.config.Node, names, tokens, r.config.Lease.Microseconds())
	type claim struct {
		Name            string
		Token, Revision int64
		From            string // node that had not released it, or ""
	}
	claims, err := pgx.CollectRows(rows, pgx.RowToStructByPos[claim])
	if err != nil {
		return err
	}
	for _, c := range claims {
		r.count(func(s *Stats) {
			s.Claimed++
			if c.From != "" {
				s.TakenOver++
			}
		})
		if c.From != "" {
			r.config.Log.Warn("took over a sink with an expired lease", "sink", c.Name, "from", c.From)
		} else {
			r.config.Log.Info("delivering to a sink", "sink", c.Name)
		}
		i := slices.IndexFunc(r.config.Sinks, func(s Sink) bool { return s.Name == c.Name })
		r.startHolder(&r.config.Sinks[i], c.Token, c.Revision, sent.Add(r.config.Lease))
	}
	r.lags.loop.Wake() // to find undelivered events
	return nil
}
