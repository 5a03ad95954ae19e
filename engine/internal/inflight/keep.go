package inflight

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
)

// leaseUpdate is an update that the heartbeater writes: the lease of a command is extended or released.
type leaseUpdate struct {
	*flight
	progress string       // the newest report, JSON; "" none
	back     *decide.Back // nil: its lease goes on
	created  time.Time    // of a lease of which it is not known whether it was taken: when the command was; zero: whenever

	// Of one that is given back:
	runAt time.Time // by the engine's clock; zero where it is stuck
	next  time.Time // not to be written before: it could not be
}

// giveBack lets others have a command. The heartbeater writes it, with others.
func (r *Runner) giveBack(f *flight, b *decide.Back) {
	n := &leaseUpdate{flight: f, back: b}
	if b.Stuck == "" {
		wait := b.Least
		if b.Most > b.Least {
			wait += rand.N(b.Most - b.Least)
		}
		n.runAt = r.config.Clock.Now().Add(wait)
	}
	r.mu.Lock()
	held := r.held[f.Ref] == f
	if held {
		delete(r.held, f.Ref)
		r.stats.count(func(s *Stats) { s.givenBack(b) }) // before anybody can see it
		n.progress = string(f.progress)
		r.keeper.returns = append(r.keeper.returns, n)
		poke(r.keeper.woken)
	}
	r.mu.Unlock()
	switch {
	case !held: // another attempt has begun
	case b.Stuck != "":
		r.config.Log.Warn("a command waits for an operator", f.attrs("why", b.Stuck, "failure", b.Failure)...)
	case b.Failed:
		r.config.Log.Info("an attempt failed and is tried again", f.attrs("failure", b.Failure, "at", n.runAt)...)
	}
}

// giveBackUnbegun releases an attempt that this node leased and did not begin. It is due at once and does not count as a failure.
func (r *Runner) giveBackUnbegun(f *flight) {
	n := &leaseUpdate{flight: f, back: decide.Later(0).Back, runAt: r.config.Clock.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := r.held[f.Ref]; held != nil && held.Attempt == f.Attempt {
		return
	}
	r.stats.count(func(s *Stats) { s.givenBack(n.back) })
	r.keeper.returns = append(r.keeper.returns, n)
	poke(r.keeper.woken)
}

// keep extends leases, stores progress and releases commands, for all attempts of the node. Updates that arrive during a write are in the
// next write.
func (r *Runner) keep(ctx context.Context) {
	every := r.config.Lease / 6 // so that a lease is prolonged when a third to half of it is over
	next := time.Now().Add(every)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-r.keeper.woken:
		case <-timer.C:
		case <-r.keeper.drained:
			if err := r.returnAmbiguous(ctx); err != nil {
				r.config.Log.Warn("cannot ask for leases", "error", err)
			}
			r.write(ctx, r.gather(time.Now().Add(retryGap), false)) // also what could not be written a moment ago
			return
		}
		now := time.Now()
		all := !now.Before(next)
		if all {
			next = now.Add(every)
		}
		if !r.write(ctx, r.gather(now, all)) {
			if soon := time.Now().Add(retryGap); soon.Before(next) {
				next = soon
			}
		}
		soonest := next
		r.mu.Lock()
		if at := r.keeper.reportAt; !at.IsZero() {
			soonest = earlier(soonest, at)
		}
		for _, n := range r.keeper.returns {
			soonest = earlier(soonest, n.next)
		}
		r.mu.Unlock()
		timer.Reset(time.Until(soonest))
	}
}

// gather collects what is to be written now, by tenant. all looks at every lease and prolongs those that need it.
func (r *Runner) gather(now time.Time, all bool) map[string][]*leaseUpdate {
	r.mu.Lock()
	defer r.mu.Unlock()
	notes := map[string][]*leaseUpdate{}
	add := func(f *flight) {
		notes[f.Tenant] = append(notes[f.Tenant], &leaseUpdate{flight: f, progress: string(f.progress)})
		f.progress, f.renewing = nil, false
	}
	reports := !r.keeper.reportAt.IsZero() && !now.Before(r.keeper.reportAt)
	if reports {
		r.keeper.reportAt = time.Time{}
	}
	switch {
	case all:
		for _, f := range r.held {
			if f.keeps(now) && (now.Sub(f.kept) >= r.config.Lease/3 || f.progress != nil) {
				add(f)
			}
		}
	case reports:
		for _, f := range r.keeper.reported {
			if (f.progress != nil || f.renewing) && f.keeps(now) && r.held[f.Ref] == f {
				add(f)
			}
		}
	}
	if all || reports {
		r.keeper.reported = nil
	}
	var waiting []*leaseUpdate
	for _, n := range r.keeper.returns {
		if now.Before(n.next) {
			waiting = append(waiting, n)
		} else {
			notes[n.Tenant] = append(notes[n.Tenant], n)
		}
	}
	r.keeper.returns = waiting
	return notes
}

// Heard takes notice that other nodes have changed commands with these hashes. One that is worked on here may have been asked to stop: its
// heartbeat, which tells, is sent now.
func (r *Runner) Heard(commands []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.held) == 0 {
		return
	}
	changed := make(map[uint64]bool, len(commands))
	for _, c := range commands {
		changed[c] = true
	}
	for ref, f := range r.held {
		if changed[ref.Hash()] {
			r.renewNow(f)
		}
	}
}

// renewNow requests that the lease of a command is extended at once, which also returns its state. r.mu is held.
func (r *Runner) renewNow(f *flight) {
	f.renewing = true
	r.keeper.reported = append(r.keeper.reported, f)
	r.keeper.reportAt = time.Now()
	poke(r.keeper.woken)
}

// keeps reports whether to extend the lease. A lease is not extended beyond the timeout of its attempt, so that another node takes over an
// attempt that does not end.
func (f *flight) keeps(now time.Time) bool {
	return f.submitted || f.deadline.IsZero() || now.Before(f.deadline)
}

// written takes notice of an update that is stored. by is who asked the command to stop, or "".
func (r *Runner) written(n *leaseUpdate, sent time.Time, by string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.back == nil {
		n.kept = sent
		r.stats.count(func(s *Stats) { s.Heartbeats++ })
		if n.begin != nil {
			n.CancelledBy = by
			r.beginOrRenew(n.flight)
		} else if by != "" && n.Phase == transitions.Working {
			n.stop(&decide.CancelledError{By: by})
		}
		return
	}
	if by != "" && n.CancelledBy == "" {
		r.want(true) // it is due at once
	} else if !n.runAt.IsZero() {
		r.wantAt(n.runAt)
	}
}

// retryLater takes back updates that could not be stored, to be stored soon.
func (r *Runner) retryLater(notes []*leaseUpdate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	soon := time.Now().Add(retryGap)
	for _, n := range notes {
		switch {
		case n.back != nil:
			n.next = soon
			r.keeper.returns = append(r.keeper.returns, n)
		case n.progress != "" && n.flight.progress == nil:
			n.flight.progress = []byte(n.progress)
		}
	}
}
