package commit

import (
	"time"

	"github.com/pawlhq/pawl/workflow"
)

// pace measures how fast committers empty a queue that has more commands than they can take, from one group to the next. It estimates the
// waiting time of a new command. If the queue becomes empty the rate is unknown, and not needed: no command waits.
type pace struct {
	since time.Time     // when the newest group was taken and left something; zero: it left nothing
	span  time.Duration // what the groups took, the older ones ever less of it
	n     float64       // and how many commands they had
}

// paceGroups is over how many groups the pace is averaged, about.
const paceGroups = 16

// took notes a group of so many commands, and whether it left some.
func (p *pace) took(n int, left bool, now time.Time) {
	if !left {
		*p = pace{}
		return
	}
	if !p.since.IsZero() {
		p.span += now.Sub(p.since) - p.span/paceGroups
		p.n += float64(n) - p.n/paceGroups
	}
	p.since = now
}

// wait is how long so many commands will take; 0 where nothing is known.
func (p *pace) wait(n int) time.Duration {
	if p.n == 0 {
		return 0
	}
	return time.Duration(float64(p.span) / p.n * float64(n))
}

// full reports whether nothing more is to wait: the queue is at one of its bounds, or what comes now would
// wait for too long. Two groups for each committer always may: with fewer they would be small. A caller who can wait
// for room leaves half of the time, and one of three groups, to those who cannot: else an import would have all of them refused.
func (q *queue) full(canWait bool) bool {
	l := &q.limits
	if q.charged.n-max(q.asides.n-l.QueueSize/2, 0) >= l.QueueSize || q.charged.bytes-max(q.asides.bytes-l.QueueBytes/2, 0) >= l.QueueBytes {
		return true
	}
	n, groups, most := q.items.n+q.parked, 3, l.QueueWait
	if canWait {
		groups, most = 2, most/2
	}
	return n >= groups*l.GroupSize*l.Committers && l.QueueWait > 0 && q.pace.wait(n) >= most
}

// Admit fails with Overloaded if Submit would. A caller checks it first, so that a refused command costs almost nothing.
func (pipe *Pipeline) Admit() error {
	if pipe.queue.refusing.Load() {
		return pipe.overloaded()
	}
	return nil
}

func (pipe *Pipeline) overloaded() error {
	pipe.stats.refused.Add(1)
	return workflow.Errorf(workflow.Overloaded, "too many commands wait; try again with the same key")
}
