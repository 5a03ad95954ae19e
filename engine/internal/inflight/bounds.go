package inflight

import (
	"time"

	"github.com/pawlhq/pawl/internal/store"
)

// bounds is since when polls look for what is due. Nothing that could be taken was
// due before, when a poll looked last: so a poll need not read again what was taken
// since, whose entries stay in the indexes for as long as somebody has an old snapshot.
//
// What becomes visible later than lateness after it was due, or is due before a bound
// for another reason, is found by the next whole poll, which has no bounds. Each regular
// poll is one, unless they take long: then so many are not that they take a fiftieth of
// the time, but one a minute is.
//
// It belongs to the poller.
type bounds struct {
	now    time.Time              // of the newest poll, by the engine's clock
	later  time.Time              // of scheduled commands
	lapsed time.Time              // of leases that have run out, by the database's clock
	work   map[activity]time.Time // of work
	whole  time.Time              // when the next poll is a whole one, by this node's clock
}

const (
	wholeShare = 50 // of the time one part
	wholeMost  = time.Minute
)

// begin says since when a poll looks. It is whole if it is a regular one and its time
// has come, or if the engine's clock has jumped back.
func (b *bounds) begin(q *pollRequest, activities []store.Activity) {
	q.whole = q.tick && !time.Now().Before(b.whole)
	if q.now.Before(b.now.Add(-lateness / 2)) {
		*b, q.whole = bounds{}, true
	}
	b.now, q.activities = q.now, activities
	if q.whole {
		return
	}
	q.since, q.lapsed, q.oldest = b.later, b.lapsed, b.oldest()
	for i := range activities {
		a := &activities[i]
		a.Since = b.work[activity{a.Workflow, a.Name}]
	}
}

// oldest is since when any work is looked for.
func (b *bounds) oldest() (oldest time.Time) {
	for _, since := range b.work {
		if oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

// found takes notice of a poll that took so long: what it found, and the database's
// clock.
func (b *bounds) found(q pollRequest, seen []candidate, theirs time.Time, took time.Duration) {
	if q.whole {
		b.whole = time.Now().Add(min(wholeShare*took, wholeMost))
	}
	later, lapsed := q.now.Add(-lateness), theirs.Add(-lateness)
	first, works := map[activity]time.Time{}, 0
	for _, c := range seen {
		switch {
		case c.lapsed:
			lapsed = earlier(lapsed, c.since)
		case c.turn:
		case c.slot == activity{}:
			later = earlier(later, c.since)
		default:
			works++
			if since, ok := first[c.slot]; !ok || c.since.Before(since) {
				first[c.slot] = c.since
			}
		}
	}
	if q.dues > 0 {
		b.later = later
	}
	if q.dues+q.works > 0 {
		b.lapsed = lapsed
	}
	for _, a := range q.activities {
		slot, end := activity{a.Workflow, a.Name}, q.now.Add(-lateness)
		since, some := first[slot]
		switch {
		case some:
			b.set(slot, earlier(since, end))
		case works < q.works:
			b.set(slot, end)
		case b.work[slot].IsZero(): // what there is may be behind what was found
			b.set(slot, a.Since)
		}
	}
}

func (b *bounds) set(a activity, since time.Time) {
	if b.work == nil {
		b.work = map[activity]time.Time{}
	}
	b.work[a] = since
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// never is when something is due of which nothing is known.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
