package inflight

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/backoff"
	"github.com/pawlhq/pawl/internal/kernel/store"
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

// Wake polls for due work now: another node has some that it cannot take, or an operation has made some.
func (r *Runner) Wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.poller.wanted.next = time.Time{} // so that the poll tells what others know
	r.want(true)
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
		tick := !begun.Before(next)
		if q, ok := r.nextRequest(tick); ok {
			if err := r.poll(ctx, q, tick); err != nil && ctx.Err() == nil {
				r.config.Log.Warn("cannot poll for due work", "error", err)
			}
			if tick {
				next = begun.Add(r.config.Every)
			}
		}
		wait := time.Until(next)
		r.mu.Lock()
		if at := r.poller.wanted.at; !at.IsZero() {
			wait = min(wait, max(at.Sub(r.config.Clock.Now()), dueGap))
		}
		r.mu.Unlock()
		timer.Reset(wait)
	}
}

// nextRequest says what to poll for now, at the regular poll or before it. false: nothing.
func (r *Runner) nextRequest(tick bool) (store.PollRequest, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, w := r.config.Clock.Now(), r.poller.wanted
	if !w.at.IsZero() && !w.at.After(now) {
		w.work, w.due = true, true
	}
	due := tick || w.due
	if r.ended || !due && !w.work {
		return store.PollRequest{}, false
	}
	r.poller.wanted.work, r.poller.wanted.due = false, false
	s := &r.slots
	q := store.PollRequest{Now: now, Works: s.workers, Full: s.full(), Workflows: r.known}
	if q.Works > 0 {
		q.Turns = r.poller.turns.next(q.Works)
		s.more = false // this poll sees who waits
		for _, l := range s.loads {
			if !l.full() {
				l.waiting = false
			}
		}
	} else {
		s.more = true
	}
	if due {
		r.poller.wanted.at = time.Time{} // the poll will tell
		q.Scheduled = min(s.deciding, dueBatch)
		s.moreDue = q.Scheduled == 0
	}
	if q.Scheduled > 0 {
		q.Later = r.poller.later.next(q.Scheduled)
	}
	if !tick && q.Works == 0 && q.Scheduled == 0 {
		return q, false
	}
	q.Activities = r.takeable()
	r.poller.bounds.begin(&q, tick)
	q.Next = now
	if !q.Whole && w.next.After(now) {
		q.Next = w.next.Add(-time.Microsecond)
	}
	r.poller.wanted.next = never // unless something becomes known, or the poll tells
	return q, true
}

// takeable are the activities of which something can be taken. r.mu is held.
func (r *Runner) takeable() []store.Activity {
	list := make([]store.Activity, 0, len(r.limits))
	for a, limit := range r.limits {
		if room := r.slots.room(a, limit); room > 0 {
			list = append(list, store.Activity{Workflow: a.workflow, Name: a.transition, Room: room})
		}
	}
	return list
}

// poll finds due work, claims it and begins to work on it. tick: it is the regular poll.
func (r *Runner) poll(ctx context.Context, q store.PollRequest, tick bool) error {
	err := r.returnAmbiguous(ctx)
	var found []store.Candidate
	if err == nil {
		found, err = r.findDue(ctx, q)
	}
	if err != nil {
		r.poller.contact.failed = true
		r.mu.Lock()
		r.poller.wanted.next = time.Time{}
		r.mu.Unlock()
		return err
	}
	parked := r.park(ctx, q.Now, found)
	resumed := r.resumePaused(ctx, q)
	found = r.poller.contact.takeable(found, tick)
	works, dues := countDue(found)
	chosen, shadowed := r.choose(found)
	if q.Works > 0 {
		r.poller.turns.taken(q.Turns, found, chosen, works == q.Works)
	}
	if q.Scheduled > 0 {
		r.poller.later.taken(q.Later, found, chosen, dues == q.Scheduled)
	}
	claimed, err := r.claim(ctx, chosen)

	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.slots
	if q.Scheduled > 0 && dues == q.Scheduled {
		s.moreDue = true
	}
	if resumed || parked && s.moreDue {
		r.want(true)
	}
	if q.Works > 0 && works == q.Works {
		if !shadowed {
			s.more = true
		} else if tick {
			r.want(false) // for what is behind those whose activity is full now
		}
	}
	if claimed > 0 {
		r.poller.emptyClaims = 0
	}
	switch {
	case err != nil || len(chosen) == 0 || !s.more && !s.moreDue:
	case claimed == 0: // others were quicker, or somebody has locked them
		r.poller.emptyClaims++
		r.wantAt(r.config.Clock.Now().Add(dueGap + backoff.Delay(claimRetry, r.poller.emptyClaims)))
	case s.more && s.workers > 0 || s.moreDue && s.deciding >= dueBatch:
		r.want(s.moreDue)
	}
	return err
}

// countDue counts what comes in the order in which it is due: work, and scheduled commands, also those that a pause holds.
func countDue(found []store.Candidate) (works, dues int) {
	for _, c := range found {
		switch c.Kind {
		case store.Later:
			dues++
		case store.Work:
			works++
		}
	}
	return works, dues
}

// findDue asks for candidates.
func (r *Runner) findDue(ctx context.Context, q store.PollRequest) ([]store.Candidate, error) {
	r.stats.count(func(s *Stats) { s.Polls++ })
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	sent := time.Now()
	due, err := r.sql.Poll(ctx, r.config.Pool, q)
	if err != nil {
		return nil, err
	}
	received := time.Now()
	r.config.Clock.Set(due.Clock, sent, received)
	if gap, again := r.poller.contact.succeeded(due.Clock, sent, received); again {
		r.config.Log.Info("the database was out of sight, or its clock has jumped: "+
			"leases that ran out meanwhile are left to their holders for a while", "gap", gap, "for", r.poller.contact.wait)
	}
	r.config.Paused(due.Paused, sent)
	r.poller.pauses.seen(&due)
	r.poller.bounds.found(q, &due, received.Sub(sent))
	if next := due.Next; next != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.poller.wanted.at.IsZero() || next.Before(r.poller.wanted.at) {
			r.poller.wanted.at = *next
		}
		r.poller.wanted.next = earlier(r.poller.wanted.next, *next)
	}
	return due.Found, nil
}

// choose takes a slot for each candidate that there is one for. shadowed says that some have none because their activity is full.
func (r *Runner) choose(found []store.Candidate) (chosen []store.Candidate, shadowed bool) {
	taken := map[transitions.Ref]bool{} // what is a tenant's turn may be the next besides
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range found {
		switch s, a := &r.slots, slotOf(&c); {
		case c.Key == "" || taken[c.Ref] || c.Pause != "":
		case s.take(a, r.limits[a]):
			chosen = append(chosen, c)
			taken[c.Ref] = true
		case a == (activity{}):
			s.moreDue = true
		case s.wait(a):
			shadowed = true
		default:
			s.more = true
		}
	}
	return chosen, shadowed
}

// knownOf returns the workflows that this node knows and their versions, as a poll asks for them, and how many attempts of each activity
// may run at once, as its newest version says.
func knownOf(c *Config) (known []string, limits map[activity]int) {
	limits = map[activity]int{}
	for _, name := range c.Workflows {
		known = append(known, name)
		for _, w := range c.Definitions.Versions(name) {
			known = append(known, fmt.Sprint(name, " ", w.Version))
			for _, s := range w.Steps {
				a := activity{name, s.Name}
				if _, newer := limits[a]; !newer && s.Work != nil {
					limits[a] = s.Work.Concurrency
				}
			}
		}
	}
	return known, limits
}
