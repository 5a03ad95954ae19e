package inflight

import (
	"github.com/pawlhq/pawl/internal/kernel/store"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// activity names what an attempt runs. Its attempts share a limit, whatever the version of the workflow. The zero activity is the deciding
// of a scheduled command, which takes no worker.
type activity struct{ workflow, transition string }

// slotOf is what a candidate takes.
func slotOf(c *store.Candidate) activity {
	if c.Phase == transitions.Scheduled {
		return activity{}
	}
	return activity{c.Workflow, c.Transition}
}

// slots counts who works, and who could. Runner.mu guards it.
type slots struct {
	workers  int // that are free
	deciding int // scheduled commands that could be decided besides
	busy     int // both kinds that are taken
	loads    map[activity]*load
	more     bool // there may be due work that waits for any worker
	moreDue  bool // there are more scheduled commands that are due
}

// load is how busy an activity is.
type load struct {
	running int
	limit   int  // 0: as many as there are workers
	waiting bool // there may be due work of it that waits for one of its own attempts to end
}

func (l *load) full() bool { return l.limit > 0 && l.running >= l.limit }

// loadOf finds the load of an activity. It keeps the limit that was seen last.
func (s *slots) loadOf(a activity, limit int) *load {
	l := s.loads[a]
	if l == nil {
		l = &load{}
		s.loads[a] = l
	}
	l.limit = limit
	return l
}

// take takes a slot, if one is free.
func (s *slots) take(a activity, limit int) bool {
	if a == (activity{}) {
		if s.deciding == 0 {
			return false
		}
		s.deciding--
		s.busy++
		return true
	}
	l := s.loadOf(a, limit)
	if s.workers == 0 || l.full() {
		return false
	}
	s.workers--
	s.busy++
	l.running++
	return true
}

// room is how many slots of an activity are free.
func (s *slots) room(a activity, limit int) int {
	if limit == 0 {
		return s.workers
	}
	if l := s.loads[a]; l != nil {
		limit -= l.running
	}
	return min(limit, s.workers)
}

// vacate frees a slot. It reports whether work may be waiting for it.
func (s *slots) vacate(a activity) (wanted bool) {
	s.busy--
	if a == (activity{}) {
		s.deciding++
		return s.moreDue && s.deciding >= dueBatch
	}
	s.workers++
	l := s.loads[a]
	l.running--
	return s.more || l.waiting
}

// wait notes that an activity wants one more slot, if it has all that it may have. false: it is not its limit that it waits for.
func (s *slots) wait(a activity) bool {
	l := s.loads[a]
	if l == nil || !l.full() {
		return false
	}
	l.waiting = true
	return true
}

// full lists the activities of which nothing can be taken now, as the poll wants them.
func (s *slots) full() []string {
	names := []string{}
	for a, l := range s.loads {
		if l.full() {
			names = append(names, a.workflow+" "+a.transition)
		}
	}
	return names
}

// Reserve takes a free worker for an activity of a workflow that is about to be accepted. false: none is free, or others have waited for
// longer; the command will be worked on when it is due.
func (r *Runner) Reserve(name string, step *workflow.Step) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := activity{name, step.Name}
	if !r.started || r.ended || r.slots.more || r.slots.loadOf(a, step.Work.Concurrency).waiting {
		return false
	}
	return r.slots.take(a, step.Work.Concurrency)
}

// Release frees a worker that was reserved for a command that did not start.
func (r *Runner) Release(name string, step *workflow.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vacate(activity{name, step.Name})
}

// vacate frees a slot for waiting work. r.mu is held.
func (r *Runner) vacate(a activity) {
	if r.slots.vacate(a) {
		r.want(a == activity{})
	}
	r.checkIdle()
}

// turns shares what a node can take among tenants when there is more of it due: workers among those with work, and decisions among those
// with scheduled commands, which have turns of their own. A poll takes one command of each of the next tenants, and for what is left what
// has been due for longest. It belongs to the poller.
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
