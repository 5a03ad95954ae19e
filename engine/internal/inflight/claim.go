package inflight

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// claim leases the candidates, which have their slots, and begins to work on
// those that it gets. The others' slots are free again.
func (r *Runner) claim(ctx context.Context, chosen []store.Candidate) (claimed int, err error) {
	if len(chosen) == 0 {
		return 0, nil
	}
	byRef := make(map[transitions.Ref]*store.Candidate, len(chosen))
	for i := range chosen {
		byRef[chosen[i].Ref] = &chosen[i]
	}
	kept := time.Now()
	flights, err := r.lease(ctx, chosen)
	if err != nil {
		r.mu.Lock()
		for _, c := range chosen {
			r.askLater(c.Ref, c.Attempt+1, time.Time{})
		}
		r.mu.Unlock()
		if err := r.returnUnheard(ctx); err != nil {
			r.config.Log.Warn("cannot ask for leases", "error", err)
		}
	}
	changed := make([]transitions.Ref, 0, len(flights))
	for _, f := range flights {
		f.kept, f.slot = kept, slotOf(byRef[f.Ref])
		delete(byRef, f.Ref)
		changed = append(changed, f.Ref)
		r.stats.count(func(s *Stats) { s.Claimed++ })
		if f.TakenFrom != "" {
			r.stats.count(func(s *Stats) { s.TakenOver++ })
			r.config.Log.Warn("took over a command whose lease had run out", f.attrs("from", f.TakenFrom, "failures", f.Failures)...)
		}
		r.launch(f)
	}
	r.mu.Lock()
	for _, c := range byRef {
		r.slots.vacate(slotOf(c))
	}
	r.checkIdle()
	r.mu.Unlock()
	if len(changed) > 0 {
		r.config.Watchers.Changed(changed)
	}
	return len(flights), err
}

// lease leases the candidates that it gets; none with an error.
func (r *Runner) lease(ctx context.Context, chosen []store.Candidate) (flights []*flight, err error) {
	tenants := map[string]*store.Keys{}
	for _, c := range chosen {
		if tenants[c.Tenant] == nil {
			tenants[c.Tenant] = &store.Keys{}
		}
		tenants[c.Tenant].Add(c.Ref, c.Attempt)
	}
	err = r.send(ctx, func(b *pgx.Batch) {
		for tenant, k := range tenants {
			r.sql.Claim(b, tenant, r.config.Node, r.config.Lease, r.config.Clock.Now(), k, func(claimed decide.InFlight) {
				flights = append(flights, &flight{InFlight: claimed})
			})
		}
	})
	if err != nil {
		return nil, err
	}
	return flights, nil
}

// askLater notes a lease that this node may have: the answer to the commit was lost. created is when the command was
// created, if that commit was to create it; else zero. r.mu is held.
func (r *Runner) askLater(ref transitions.Ref, attempt int, created time.Time) {
	f := &flight{InFlight: decide.InFlight{Ref: ref, Attempt: attempt}, kept: time.Now()}
	r.poller.unheard = append(r.poller.unheard, &leaseUpdate{flight: f, created: created})
}

// returnUnheard releases leases that this node took in commits and claims of unknown outcome. Their attempts have not begun.
//
// If the commit created the command, the time of creation distinguishes it from another with the same key. The database is queried until
// the lease would have expired, because the commit may become visible later.
//
// If the command existed before, the database is queried once. Until then no other node takes the attempt: the poller claims only after
// this query, and the pipeline's lease ends only after the pipeline reported the attempt.
//
// The lease expires if the database commits later than that, or if the node ends before the answer.
func (r *Runner) returnUnheard(ctx context.Context) error {
	r.mu.Lock()
	list := r.poller.unheard
	r.poller.unheard = nil
	r.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	tenants := map[string][]*leaseUpdate{}
	for _, n := range list {
		tenants[n.Tenant] = append(tenants[n.Tenant], n)
	}
	held, err := r.leased(ctx, tenants)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.poller.unheard = append(list, r.poller.unheard...)
		return err
	}
	for n := range held {
		r.giveBackUnbegun(n.flight)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range list {
		if !held[n] && !n.created.IsZero() && time.Since(n.kept) < r.config.Lease {
			r.poller.unheard = append(r.poller.unheard, n)
		}
	}
	return nil
}
