package inflight

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/transitions"
)

// wanted is why the looker should look before its time. Runner.mu guards it.
type wanted struct {
	work bool      // a worker may have something to do
	due  bool      // so may whoever decides scheduled commands
	at   time.Time // something is due then; zero: nothing is known of
}

// want asks for a look: for work, or also for scheduled commands. r.mu is held.
func (r *Runner) want(due bool) {
	r.wanted.work, r.wanted.due = true, r.wanted.due || due
	poke(r.woken)
}

// wantAt asks for a look when something is due. r.mu is held.
func (r *Runner) wantAt(at time.Time) {
	if r.wanted.at.IsZero() || at.Before(r.wanted.at) {
		r.wanted.at = at
		poke(r.woken)
	}
}

// Wake looks for due work now: another node has some that it cannot take, or an
// operation has made some.
func (r *Runner) Wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.want(true)
}

// question is what a look asks for.
type question struct {
	tick  bool      // it is the look that is made anyway
	now   time.Time // by the engine's clock
	works int       // how much work could be taken
	full  []string  // activities that cannot be taken now
	dues  int       // how many scheduled commands
	since time.Time // when they are due, at the earliest; zero: whenever
	after string    // the tenant whose turn was last
	turns int       // how many tenants have a turn
}

// candidate is a command that a look has found.
type candidate struct {
	transitions.Ref
	attempt int
	stale   bool // its lease has run out
	turn    bool // it is its tenant's turn; without a key, there is nothing of the tenant's
	slot    activity
}

// watch looks for due work: when there is reason to, and regularly.
func (r *Runner) watch(ctx context.Context) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.looking = false
		r.checkIdle()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var next time.Time // of the look that is made anyway
	for {
		select {
		case <-r.woken:
		case <-timer.C:
		case <-r.stopping:
			return
		}
		begun := time.Now()
		if q, ok := r.question(!begun.Before(next)); ok {
			if err := r.look(ctx, q); err != nil && ctx.Err() == nil {
				r.config.Log.Warn("cannot look for due work", "error", err)
			}
			if q.tick {
				next = begun.Add(r.config.Every)
			}
		}
		timer.Reset(r.pause(time.Until(next)))
	}
}

// question says what to ask for now. false: nothing.
func (r *Runner) question(tick bool) (question, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, w := r.config.Clock.Now(), r.wanted
	if !w.at.IsZero() && !w.at.After(now) {
		w.work, w.due = true, true
	}
	due := tick || w.due
	if r.ended || !due && !w.work {
		return question{}, false
	}
	r.wanted.work, r.wanted.due = false, false
	s := &r.slots
	q := question{tick: tick, now: now, works: s.workers, full: s.full()}
	if q.works > 0 {
		q.after, q.turns = r.turns.next(q.works)
		s.asked()
	} else {
		s.more = true
	}
	if due {
		r.wanted.at = time.Time{} // the look will tell
		q.dues = min(s.deciding, dueBatch)
		if !tick && !s.moreDue {
			q.since = r.seen
		}
		s.moreDue = q.dues == 0
	}
	return q, tick || q.works > 0 || q.dues > 0
}

// pause is how long there is nothing to look for.
func (r *Runner) pause(most time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wanted.at.IsZero() {
		return most
	}
	return min(most, max(r.wanted.at.Sub(r.config.Clock.Now()), dueGap))
}

// look finds due work, claims it and begins to work on it.
func (r *Runner) look(ctx context.Context, q question) error {
	found, err := r.find(ctx, q)
	if err != nil {
		r.contact.failed = true
		return err
	}
	found = r.contact.ripe(found, q.tick)
	var works, dues int
	for _, c := range found {
		switch {
		case c.stale, c.turn:
		case c.slot == (activity{}):
			dues++
		default:
			works++
		}
	}
	chosen, shadowed := r.choose(found)
	r.turns.taken(q, found, chosen, works)
	claimed, err := r.claim(ctx, chosen)

	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.slots
	if q.dues > 0 && dues < q.dues {
		r.seen = q.now.Add(-lateness)
	} else if q.dues > 0 {
		s.moreDue = true
	}
	if q.works > 0 && works == q.works {
		if !shadowed {
			s.more = true
		} else if q.tick {
			r.want(false) // for what is behind those whose activity is full now
		}
	}
	if claimed > 0 {
		r.vain = 0
	}
	switch {
	case err != nil || len(chosen) == 0 || !s.more && !s.moreDue:
	case claimed == 0: // others were quicker, or somebody has locked them
		wait := dueGap << min(r.vain, 7)
		r.vain++
		r.wantAt(r.config.Clock.Now().Add(wait + rand.N(wait)))
	case s.more && s.workers > 0 || s.moreDue && s.deciding >= dueBatch:
		r.want(s.moreDue)
	}
	return err
}

// find asks for candidates. The statement is planned each time, for the tables
// as they are: a plan from when the table was empty would read all of it.
func (r *Runner) find(ctx context.Context, q question) ([]candidate, error) {
	r.stats.looks.Add(1)
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	sent := time.Now()
	rows, err := r.config.Pool.Query(ctx, r.sql.look, pgx.QueryExecModeExec, q.now, int64(q.dues), int64(q.works), q.full, q.since, r.config.Workflows,
		q.after, int64(q.turns))
	if err != nil {
		return nil, err
	}
	var theirs time.Time
	var next *time.Time
	var paused [][2]string
	var found []candidate
	var c candidate
	var phase transitions.Phase
	var kind string
	_, err = pgx.ForEachRow(rows, []any{&theirs, &next, &paused, &kind, &c.Tenant, &c.Scope, &c.Key, &c.attempt, &phase,
		&c.slot.workflow, &c.slot.transition}, func() error {
		if c.Tenant == "" {
			return nil // there is nothing
		}
		one := c
		one.stale, one.turn = kind == "lapsed", kind == "turn"
		if phase == transitions.Scheduled {
			one.slot = activity{}
		}
		found = append(found, one)
		return nil
	})
	if err != nil {
		return nil, err
	}
	received := time.Now()
	r.config.Clock.Set(theirs, sent, received)
	if gap, again := r.contact.made(theirs, sent, received); again {
		r.config.Log.Info("the database was out of sight, or its clock has jumped: leases that ran out meanwhile are left to their holders for a while",
			"gap", gap, "for", r.contact.wait)
	}
	r.config.Paused(paused, sent)
	r.mu.Lock()
	defer r.mu.Unlock()
	if next != nil && (r.wanted.at.IsZero() || next.Before(r.wanted.at)) {
		r.wanted.at = *next
	}
	return found, nil
}

// choose takes a slot for each candidate that there is one for. shadowed says
// that some have none because their activity is full.
func (r *Runner) choose(found []candidate) (chosen []candidate, shadowed bool) {
	limits := map[activity]int{}
	taken := map[transitions.Ref]bool{} // what is a tenant's turn may be the next besides
	for _, c := range found {
		if _, ok := limits[c.slot]; !ok {
			limits[c.slot] = r.limit(c.slot)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range found {
		switch s := &r.slots; {
		case c.Key == "" || taken[c.Ref]:
		case s.take(c.slot, limits[c.slot]):
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

// limit is how many attempts of an activity may run at once, as its newest
// version says.
func (r *Runner) limit(a activity) int {
	for _, w := range r.config.Definitions.Versions(a.workflow) {
		if s := w.Activity(a.transition); s != nil {
			return s.Work.Concurrency
		}
	}
	return 0
}
