package inflight

import "github.com/pawlhq/pawl/internal/kernel/store"

// turns shares what a node can take among tenants when there is more of it due: workers
// among those with work, and decisions among those with scheduled commands, which have
// turns of their own. A poll takes one command of each of the next tenants, and for what
// is left what has been due for longest. It belongs to the poller.
type turns struct {
	kind    string // store.Turn or store.LaterTurn
	last    string // the tenant whose turn was last; "" before the first
	backlog bool   // the newest poll found more than it could take
}

// mostTurns is of how many tenants a poll takes a turn, at most.
const mostTurns = dueBatch

// next returns where the round-robin continues, and how many tenants a poll with so much capacity queries: more than the capacity, because
// some may have no due work.
func (t *turns) next(room int) store.Turns {
	if !t.backlog {
		return store.Turns{}
	}
	return store.Turns{After: t.last, Most: min(16+8*room, mostTurns)}
}

// taken takes notice of a poll that asked for so many turns: what it found, what of that
// was chosen, and whether there is more than it could take.
func (t *turns) taken(asked store.Turns, found, chosen []store.Candidate, backlog bool) {
	t.backlog = backlog
	served := map[string]bool{}
	for _, c := range chosen {
		served[c.Tenant] = served[c.Tenant] || c.Kind == t.kind
	}
	walked := 0
	for _, c := range found {
		switch {
		case c.Kind != t.kind:
			continue
		case c.Key != "" && c.Pause == "" && !served[c.Tenant]:
			return // the turns go on with this one
		}
		walked++
		t.last = c.Tenant
	}
	if walked < asked.Most {
		t.last = "" // the walk has come to the end
	}
}
