package inflight

import (
	"time"

	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
)

// contact is how long this node has had the database in sight. It decides which
// leases that have run out may be taken over.
//
// That a lease has run out says that its holder is gone only if the holder could
// have prolonged it. After an outage that was longer than a lease all have run
// out, of workers that are busy and well, and so after a fail-over to a database
// whose clock is ahead. So a node takes over when its own polls have succeeded for
// as long as a lease lasts: then the others had that time to come back.
//
// A lease must have run out in two regular polls one after the other. A commit may
// become visible when the lease that it took is over already; the time between the
// two polls is for its holder to prolong it.
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
