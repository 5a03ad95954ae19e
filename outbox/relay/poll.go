package relay

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// sinkState is the state of a sink in a poll.
type sinkState struct {
	name     string
	token    int64
	revision int64
	paused   bool
	free     bool // no node holds its lease
	renewed  bool // this node's lease was renewed
}

// poll reads the state of the sinks and whether logs have grown, renews leases and claims free
// sinks. It is the only query of an idle node.
func (r *Relay) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, queryBudget)
	defer cancel()
	sent := time.Now()
	held := r.held()
	list, err := r.sinkStates(ctx, held)
	if err != nil {
		return err
	}
	var free []*sinkState
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
	r.lags.wake() // for failed or postponed requests
	r.mu.Lock()
	stopping := r.ending
	r.mu.Unlock()
	if len(free) == 0 || stopping {
		return nil
	}
	return r.claim(ctx, free)
}

// held returns this node's holders by sink.
func (r *Relay) held() map[string]*holder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.holders)
}

// sinkStates reads the state of the sinks. It replans the statement for the current tables.
func (r *Relay) sinkStates(ctx context.Context, held map[string]*holder) (map[string]*sinkState, error) {
	r.stats.polls.Add(1)
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
	rows, err := r.config.Pool.Query(ctx, r.sql.poll, pgx.QueryExecModeExec, names, tokens, heads, r.config.Lease.Microseconds())
	if err != nil {
		return nil, err
	}
	list := map[string]*sinkState{}
	var s sinkState
	var sum int64
	columns := []any{&s.name, &s.token, &s.revision, &s.paused, &s.free, &s.renewed, &sum}
	_, err = pgx.ForEachRow(rows, columns, func() error {
		one := s
		list[s.name] = &one
		return nil
	})
	if err != nil {
		return nil, err
	}
	if heads && len(list) > 0 {
		if sum != r.lags.sum.Load() {
			r.lags.moved.Store(true)
		}
		if took := time.Since(begun) + time.Duration(r.lags.took.Load()); took > r.config.Every/10 {
			r.nextHeads = begun.Add(10 * took) // limits the cost with many tenants
		}
	}
	return list, nil
}

// claim claims sinks and starts to deliver to them.
func (r *Relay) claim(ctx context.Context, free []*sinkState) error {
	names, tokens := make([]string, len(free)), make([]int64, len(free))
	for i, s := range free {
		names[i], tokens[i] = s.name, s.token
	}
	sent := time.Now()
	rows, err := r.config.Pool.Query(ctx, r.sql.claim, pgx.QueryExecModeExec, r.config.Node, names, tokens, r.config.Lease.Microseconds())
	if err != nil {
		return err
	}
	type claimed struct {
		name, taken     string
		token, revision int64
	}
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l claimed, err error) {
		err = row.Scan(&l.name, &l.token, &l.revision, &l.taken)
		return l, err
	})
	if err != nil {
		return err
	}
	for _, l := range got {
		r.stats.claimed.Add(1)
		if l.taken != "" {
			r.stats.takenOver.Add(1)
			r.config.Log.Warn("took over a sink with an expired lease", "sink", l.name, "from", l.taken)
		} else {
			r.config.Log.Info("delivering to a sink", "sink", l.name)
		}
		i := slices.IndexFunc(r.config.Sinks, func(s Sink) bool { return s.Name == l.name })
		r.startHolder(&r.config.Sinks[i], l.token, l.revision, sent.Add(r.config.Lease))
	}
	r.lags.wake() // to find undelivered events
	return nil
}
