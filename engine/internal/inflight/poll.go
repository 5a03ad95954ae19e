package inflight

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/transitions"
)

// wanted is why the poller should poll before its time. Runner.mu guards it.
type wanted struct {
	work bool      // a worker may have something to do
	due  bool      // so may whoever decides scheduled commands
	at   time.Time // something is due then; zero: nothing is known of
	next time.Time // nothing that is known of is due before it, and after the newest poll; zero: that is not known
}

// want asks for a poll: for work, or also for scheduled commands. r.mu is held.
func (r *Runner) want(due bool) {
	r.poller.wanted.work, r.poller.wanted.due = true, r.poller.wanted.due || due
	poke(r.poller.woken)
}

// wantAt asks for a poll when something is due. r.mu is held.
func (r *Runner) wantAt(at time.Time) {
	if r.poller.wanted.at.IsZero() || at.Before(r.poller.wanted.at) {
		r.poller.wanted.at = at
		poke(r.poller.woken)
	}
	r.poller.wanted.next = earlier(r.poller.wanted.next, at)
}

// Wake polls for due work now: another node has some that it cannot take, or an
// operation has made some.
func (r *Runner) Wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.poller.wanted.next = time.Time{} // so that the poll tells what others know
	r.want(true)
}

// pollRequest is what a poll asks for.
type pollRequest struct {
	tick  bool      // it is the regular poll
	now   time.Time // by the engine's clock
	works int       // how much work could be taken
	full  []string  // activities that cannot be taken now
	dues  int       // how many scheduled commands
	after string    // the tenant whose turn was last
	turns int       // how many tenants have a turn

	whole      bool             // it has no bounds
	activities []store.Activity // those that can be taken, since when, and how much of each
	since      time.Time        // scheduled commands: when they are due, at the earliest; zero: whenever
	lapsed     time.Time        // likewise, when leases have run out
	oldest     time.Time        // likewise, any work
	next       time.Time        // after it something is due next
}

// candidate is a command that a poll has found.
type candidate struct {
	transitions.Ref
	attempt int
	lapsed  bool // its lease has run out
	turn    bool // it is its tenant's turn; without a key, there is nothing of the tenant's
	slot    activity
	since   time.Time // it is due, or its lease has run out
	pause   string    // what holds it, as the store says it; "" nothing
}

// pollLoop polls for due work: when there is reason to, and regularly.
func (r *Runner) pollLoop(ctx context.Context) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.poller.running = false
		r.checkIdle()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var next time.Time // of the regular poll
	for {
		select {
		case <-r.poller.woken:
		case <-timer.C:
		case <-r.stop.begun:
			return
		}
		begun := time.Now()
		if q, ok := r.nextRequest(!begun.Before(next)); ok {
			if err := r.poll(ctx, q); err != nil && ctx.Err() == nil {
				r.config.Log.Warn("cannot poll for due work", "error", err)
			}
			if q.tick {
				next = begun.Add(r.config.Every)
			}
		}
		timer.Reset(r.pause(time.Until(next)))
	}
}

// nextRequest says what to poll for now. false: nothing.
func (r *Runner) nextRequest(tick bool) (pollRequest, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, w := r.config.Clock.Now(), r.poller.wanted
	if !w.at.IsZero() && !w.at.After(now) {
		w.work, w.due = true, true
	}
	due := tick || w.due
	if r.ended || !due && !w.work {
		return pollRequest{}, false
	}
	r.poller.wanted.work, r.poller.wanted.due = false, false
	s := &r.slots
	q := pollRequest{tick: tick, now: now, works: s.workers, full: s.full()}
	if q.works > 0 {
		q.after, q.turns = r.poller.turns.next(q.works)
		s.polled()
	} else {
		s.more = true
	}
	if due {
		r.poller.wanted.at = time.Time{} // the poll will tell
		q.dues = min(s.deciding, dueBatch)
		s.moreDue = q.dues == 0
	}
	if !tick && q.works == 0 && q.dues == 0 {
		return q, false
	}
	r.poller.bounds.begin(&q, r.takeableActivities())
	q.next = now
	if !q.whole && w.next.After(now) {
		q.next = w.next.Add(-time.Microsecond)
	}
	r.poller.wanted.next = never // unless something becomes known, or the poll tells
	return q, true
}

// takeableActivities are those of which something can be taken. r.mu is held.
func (r *Runner) takeableActivities() []store.Activity {
	list := make([]store.Activity, 0, len(r.limits))
	for a, limit := range r.limits {
		if room := r.slots.room(a, limit); room > 0 {
			list = append(list, store.Activity{Workflow: a.workflow, Name: a.transition, Room: room})
		}
	}
	return list
}

// pause is how long there is nothing to poll for.
func (r *Runner) pause(most time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.poller.wanted.at.IsZero() {
		return most
	}
	return min(most, max(r.poller.wanted.at.Sub(r.config.Clock.Now()), dueGap))
}

// poll finds due work, claims it and begins to work on it.
func (r *Runner) poll(ctx context.Context, q pollRequest) error {
	found, err := r.findDue(ctx, q)
	if err != nil {
		r.poller.contact.failed = true
		r.mu.Lock()
		r.poller.wanted.next = time.Time{}
		r.mu.Unlock()
		return err
	}
	aside, parked := r.park(ctx, q.now, found)
	resumed := r.resumePaused(ctx, q)
	found = r.poller.contact.takeable(found, q.tick)
	var works, dues int
	for _, c := range found {
		switch {
		case c.lapsed, c.turn:
		case c.pause != "":
		case c.slot == (activity{}):
			dues++
		default:
			works++
		}
	}
	chosen, shadowed := r.choose(found)
	r.poller.turns.taken(q, found, chosen, works)
	claimed, err := r.claim(ctx, chosen)

	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.slots
	if q.dues > 0 && dues+aside == q.dues {
		s.moreDue = true
	}
	if resumed || parked && s.moreDue {
		r.want(true)
	}
	if q.works > 0 && works == q.works {
		if !shadowed {
			s.more = true
		} else if q.tick {
			r.want(false) // for what is behind those whose activity is full now
		}
	}
	if claimed > 0 {
		r.poller.emptyClaims = 0
	}
	switch {
	case err != nil || len(chosen) == 0 || !s.more && !s.moreDue:
	case claimed == 0: // others were quicker, or somebody has locked them
		wait := dueGap << min(r.poller.emptyClaims, 7)
		r.poller.emptyClaims++
		r.wantAt(r.config.Clock.Now().Add(wait + rand.N(wait)))
	case s.more && s.workers > 0 || s.moreDue && s.deciding >= dueBatch:
		r.want(s.moreDue)
	}
	return err
}

// findDue asks for candidates.
func (r *Runner) findDue(ctx context.Context, q pollRequest) ([]candidate, error) {
	r.stats.count(func(s *Stats) { s.Polls++ })
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	sent := time.Now()
	seen, err := r.sql.Look(ctx, r.config.Pool, store.Look{Now: q.now, Works: q.works, Full: q.full, Scheduled: q.dues, Since: q.since,
		Workflows: r.config.Workflows, Last: q.after, Turns: q.turns, Activities: q.activities, Lapsed: q.lapsed, After: q.next,
		Oldest: q.oldest, Ended: q.whole})
	if err != nil {
		return nil, err
	}
	received := time.Now()
	r.config.Clock.Set(seen.Clock, sent, received)
	if gap, again := r.poller.contact.succeeded(seen.Clock, sent, received); again {
		r.config.Log.Info("the database was out of sight, or its clock has jumped: "+
			"leases that ran out meanwhile are left to their holders for a while",
			"gap", gap, "for", r.poller.contact.wait)
	}
	r.config.Paused(seen.Paused, sent)
	r.poller.pauses.seen(&seen)
	found := make([]candidate, len(seen.Found))
	for i, c := range seen.Found {
		found[i] = candidate{Ref: c.Ref, attempt: c.Attempt, lapsed: c.Kind == "lapsed", turn: c.Kind == "turn", since: c.Since, pause: c.Pause}
		if c.Phase != transitions.Scheduled {
			found[i].slot = activity{c.Workflow, c.Transition}
		}
	}
	r.poller.bounds.found(q, found, seen.Clock, received.Sub(sent))
	if next := seen.Next; next != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.poller.wanted.at.IsZero() || next.Before(r.poller.wanted.at) {
			r.poller.wanted.at = *next
		}
		r.poller.wanted.next = earlier(r.poller.wanted.next, *next)
	}
	return found, nil
}

// choose takes a slot for each candidate that there is one for. shadowed says
// that some have none because their activity is full.
func (r *Runner) choose(found []candidate) (chosen []candidate, shadowed bool) {
	taken := map[transitions.Ref]bool{} // what is a tenant's turn may be the next besides
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range found {
		switch s := &r.slots; {
		case c.Key == "" || taken[c.Ref] || c.pause != "":
		case s.take(c.slot, r.limits[c.slot]):
			chosen = append(chosen, c)
			taken[c.Ref] = true
		case c.slot == (activity{}):
			s.moreDue = true
		case s.wait(c.slot):
			shadowed = true
		default:
			s.more = true
		}
	}
	return chosen, shadowed
}

// limitsOf is how many attempts of each activity that is known may run at once, as its
// newest version says.
func limitsOf(c *Config) map[activity]int {
	limits := map[activity]int{}
	for _, name := range c.Workflows {
		for _, w := range c.Definitions.Versions(name) {
			for _, s := range w.Steps {
				a := activity{name, s.Name}
				if _, newer := limits[a]; !newer && s.Work != nil {
					limits[a] = s.Work.Concurrency
				}
			}
		}
	}
	return limits
}
