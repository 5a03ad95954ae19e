package inflight

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/internal/store"
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
		r.poller.unheard = chosen
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

// returnUnheard gives back what a claim may have leased whose answer was lost. No
// attempt at it has begun. Only the poller claims, and it asks before it claims again,
// so a lease of the next attempt can only be that claim's. If the database commits the
// claim later, or does not answer before the node ends, the leases run out.
func (r *Runner) returnUnheard(ctx context.Context) error {
	if len(r.poller.unheard) == 0 {
		return nil
	}
	tenants := map[string][]*leaseUpdate{}
	for _, c := range r.poller.unheard {
		f := &flight{InFlight: decide.InFlight{Ref: c.Ref, Attempt: c.Attempt + 1}}
		tenants[c.Tenant] = append(tenants[c.Tenant], &leaseUpdate{flight: f})
	}
	held, err := r.leased(ctx, tenants)
	if err != nil {
		return err
	}
	r.poller.unheard = nil
	for n := range held {
		r.giveBackUnbegun(n.flight)
	}
	return nil
}
