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
		for _, c := range chosen {
			r.askLater(&leaseUpdate{flight: &flight{InFlight: decide.InFlight{Ref: c.Ref, Attempt: c.Attempt + 1}}})
		}
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

// askLater notes a lease of which this node does not know whether it has it: the answer to the commit was lost.
func (r *Runner) askLater(n *leaseUpdate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.poller.unheard = append(r.poller.unheard, n)
	r.want(false)
}

// returnUnheard gives back what this node has leased by commits and claims whose answers were lost. No attempt at it
// has begun. Only the poller claims, and it asks before it claims again, so a lease of the next attempt at a command
// that was there can only be the one that was not heard; one at a command that was new is told by when that was created.
// If the database commits later, or does not answer before the node ends, the leases run out.
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
	return nil
}
