package inflight

import "github.com/pawlhq/pawl/internal/store"

// turns shares the workers among tenants when there is more due work than workers:
// a poll takes one command of each of the next tenants, and the workers that are left
// take what has been due for longest. It belongs to the poller.
type turns struct {
	last    string // the tenant whose turn was last; "" before the first
	backlog bool   // the newest poll for work found more than it could take
}

// next is where the turns go on, and how many tenants a poll is to ask: more than
// there are workers, for some may have nothing that is due.
func (t *turns) next(workers int) (after string, tenants int) {
	if !t.backlog {
		return "", 0
	}
	return t.last, 16 + 8*workers
}

// taken takes notice of a poll for work: what it found, what of that was chosen,
// and how many commands there were in the order in which they are due.
func (t *turns) taken(q store.PollRequest, found, chosen []store.Candidate, works int) {
	if q.Works == 0 {
		return
	}
	t.backlog = works == q.Works
	served := map[string]bool{}
	for _, c := range chosen {
		served[c.Tenant] = served[c.Tenant] || c.Kind == store.Turn
	}
	walked := 0
	for _, c := range found {
		switch {
		case c.Kind != store.Turn:
			continue
		case c.Key != "" && !served[c.Tenant]:
			return // the turns go on with this one
		}
		walked++
		t.last = c.Tenant
	}
	if walked < q.Turns {
		t.last = "" // the walk has come to the end
	}
}
