package commit

import "time"

// siblings decides how long a committer waits for the callers that it has just answered. If many callers submit one command after the
// other, they form two halves that wait for each other's commits. A node alone loses nothing by that: while the database commits, callers
// prepare. But if other nodes write the same logs, a small group waits as long for the log's last position as a large one. So a node that
// shares its logs waits for a fraction of the duration of a group, and only as long as that brings commands.
type siblings struct {
	heads    map[string]int64 // of the logs, after this node's newest groups
	others   float64          // of those groups, the share before which others have written
	expected int              // the number of commands for which the committer waits; 0 means that none waits
	here     chan struct{}    // one token: they do
	vain     int              // how often in turn they did not come
	skip     int              // groups before the next wait
}

const (
	fewSiblings = 8   // of fewer nobody is waited for
	mostHeads   = 256 // that are remembered
	mostWait    = 5 * time.Millisecond
)

// shared reports whether other nodes write the same logs.
func (s *siblings) shared() bool { return s.others >= 0.5 }

// wrote notes a group of this node's.
func (q *queue) wrote(parts []*part) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &q.siblings
	for _, p := range parts {
		if p.head == 0 {
			continue
		}
		before, known := s.heads[p.tenant]
		if len(s.heads) >= mostHeads && !known {
			clear(s.heads)
		}
		s.heads[p.tenant] = p.head
		if !known {
			continue
		}
		was := 0.0
		if p.head-int64(len(p.steps)) > before {
			was = 1
		}
		s.others += (was - s.others) / 8
	}
}

// awaitSiblings waits for the callers that the last group answered, without holding the lock. The committer counts as running meanwhile.
func (q *queue) awaitSiblings(answered int) {
	s := &q.siblings
	if answered < fewSiblings || !s.shared() || q.working > 0 || q.closed {
		return
	}
	if s.skip > 0 {
		s.skip--
		return
	}
	before := q.items.n
	s.expected = before + answered
	select {
	case <-s.here: // of an earlier wait
	default:
	}
	timer := time.NewTimer(min(q.duration/4, mostWait))
	q.atWork(1)
	q.mu.Unlock()
	select {
	case <-s.here:
	case <-timer.C:
	}
	q.mu.Lock()
	q.atWork(-1)
	timer.Stop()
	s.expected = 0
	if s.vain++; 2*(q.items.n-before) >= answered {
		s.vain = 0
	}
	s.skip = 1<<min(s.vain, 6) - 1
}
