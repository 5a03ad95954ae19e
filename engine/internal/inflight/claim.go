package inflight

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// claim leases the candidates, which have their slots, and begins to work on those that it gets. The others' slots are free again.
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
		if err := r.returnAmbiguous(ctx); err != nil {
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
	r.poller.ambiguous = append(r.poller.ambiguous, &leaseUpdate{flight: f, created: created})
}

// returnAmbiguous releases leases that this node took in commits and claims of unknown outcome. Their attempts have not begun.
//
// If the commit created the command, the time of creation distinguishes it from another with the same key. The database is queried until
// the lease would have expired, because the commit may become visible later.
//
// If the command existed before, the database is queried once. Until then no other node takes the attempt: the poller claims only after
// this query, and the pipeline's lease ends only after the pipeline reported the attempt.
//
// The lease expires if the database commits later than that, or if the node ends before the answer.
func (r *Runner) returnAmbiguous(ctx context.Context) error {
	r.mu.Lock()
	list := r.poller.ambiguous
	r.poller.ambiguous = nil
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
		r.poller.ambiguous = append(list, r.poller.ambiguous...)
		return err
	}
	for n := range held {
		r.giveBackUnbegun(n.flight)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range list {
		if !held[n] && !n.created.IsZero() && time.Since(n.kept) < r.config.Lease {
			r.poller.ambiguous = append(r.poller.ambiguous, n)
		}
	}
	return nil
}

// contact is how long this node has had the database in sight. It decides which leases that have run out may be taken over.
//
// That a lease has run out says that its holder is gone only if the holder could have prolonged it. After an outage that was longer than a
// lease all have run out, of workers that are busy and well, and so after a fail-over to a database whose clock is ahead. So a node takes
// over when its own polls have succeeded for as long as a lease lasts: then the others had that time to come back.
//
// A lease must have run out in two regular polls one after the other. A commit may become visible when the lease that it took is over
// already; the time between the two polls is for its holder to prolong it.
//
// It belongs to the poller.
type contact struct {
	lease, every time.Duration
	wait         time.Duration // how long the database is to be in sight; the lease, in tests less

	since    time.Time // in sight since then; zero: never
	failed   bool      // a poll has failed since the last that did not
	sent     time.Time // of the last poll that did not fail
	received time.Time
	theirs   time.Time               // the database's clock, as that poll saw it
	lapsed   map[transitions.Ref]int // what had run out in the last regular poll, with the attempts
	twice    map[transitions.Ref]int // what had also run out in the regular poll before it
}

// succeeded takes notice of a poll that succeeded. again says that the database was not
// in sight for too long before it, or that its clock has jumped ahead.
func (c *contact) succeeded(theirs, sent, received time.Time) (gap time.Duration, again bool) {
	most := c.lease / 3 // a lease is prolonged when half of it is left, so a gap like this ends none
	if c.since.IsZero() {
		c.since = received
	} else {
		gap = received.Sub(c.received)
		ahead := theirs.Sub(c.theirs) - received.Sub(c.sent)
		if !c.failed {
			most = max(most, 2*c.every)
		}
		if again = gap > most || ahead > c.lease/3; again {
			c.since = received
		}
	}
	c.failed, c.sent, c.received, c.theirs = false, sent, received, theirs
	return gap, again
}

// takeable leaves out the leases that have run out but are not to be taken over yet.
func (c *contact) takeable(due []store.Candidate, tick bool) []store.Candidate {
	steady := c.received.Sub(c.since) >= c.wait
	lapsed, twice := map[transitions.Ref]int{}, c.twice
	if tick {
		twice = map[transitions.Ref]int{}
	}
	var list []store.Candidate
	for _, one := range due {
		if one.Kind != store.Lapsed {
			list = append(list, one)
			continue
		}
		lapsed[one.Ref] = one.Attempt
		if attempt, before := c.lapsed[one.Ref]; tick && before && attempt == one.Attempt {
			twice[one.Ref] = attempt
		}
		if attempt, ok := twice[one.Ref]; steady && ok && attempt == one.Attempt {
			list = append(list, one)
		}
	}
	if tick {
		c.lapsed, c.twice = lapsed, twice
	}
	return list
}
