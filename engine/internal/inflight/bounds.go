package inflight

import (
	"time"

	"github.com/pawlhq/pawl/internal/kernel/store"
)

// bounds are the times from which polls look for due work. All work that was due before was taken by an earlier poll, so a poll does not
// read again the index entries of taken work, which remain while an old snapshot is open.
//
// Work that becomes visible later than lateness after it was due, or is due before a bound for another reason, is found by the next whole
// poll, which has no bounds. Every regular poll is whole unless whole polls are slow: then they take at most a fiftieth of the time, but at
// least one runs per minute.
//
// Bounds belong to the poller goroutine.
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

// begin says since when a poll looks. It is whole if it is a regular one and its time has come, or if the engine's clock has jumped back.
func (b *bounds) begin(q *store.PollRequest, tick bool) {
	q.Whole = tick && !time.Now().Before(b.whole)
	if q.Now.Before(b.now.Add(-lateness / 2)) {
		*b, q.Whole = bounds{}, true
	}
	b.now = q.Now
	if q.Whole {
		return
	}
	q.Since, q.Lapsed, q.Oldest = b.later, b.lapsed, b.oldest()
	for i := range q.Activities {
		a := &q.Activities[i]
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

// found takes notice of what a poll has found that took so long.
func (b *bounds) found(q store.PollRequest, due *store.PollResult, took time.Duration) {
	if q.Whole {
		b.whole = time.Now().Add(min(wholeShare*took, wholeMost))
	}
	end := q.Now.Add(-lateness)
	later, lapsed := end, due.Clock.Add(-lateness)
	first, works := map[activity]time.Time{}, 0
	for _, c := range due.Found {
		switch a := slotOf(&c); {
		case c.Kind == store.Lapsed:
			lapsed = earlier(lapsed, c.Since)
		case c.Kind == store.Turn, c.Kind == store.LaterTurn:
		case a == activity{}:
			later = earlier(later, c.Since)
		default:
			works++
			if since, ok := first[a]; !ok || c.Since.Before(since) {
				first[a] = c.Since
			}
		}
	}
	if q.Scheduled > 0 {
		b.later = later
	}
	if q.Scheduled+q.Works > 0 {
		b.lapsed = lapsed
	}
	for _, a := range q.Activities {
		slot := activity{a.Workflow, a.Name}
		since, some := first[slot]
		switch {
		case some:
			b.set(slot, earlier(since, end))
		case works < q.Works:
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
