package inflight

import (
	"sync"

	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// counters count one thing at a time, so that their numbers belong together.
type counters struct {
	mu sync.Mutex
	Stats
}

func (c *counters) count(what func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.Stats)
}

// ended counts an outcome that is committed.
func (s *Stats) ended(phase transitions.Phase, failure *workflow.Failure) {
	switch {
	case failure == nil && phase == transitions.Undoing:
		s.Undone++
	case failure == nil:
		s.Succeeded++
	case failure.Kind == workflow.FailureCancelled:
		s.Cancelled++
	case failure.Kind == workflow.FailureAbandoned:
		s.Abandoned++
	default:
		s.Failed++
	}
}

// givenBack counts a command that is on its way back.
func (s *Stats) givenBack(b *decide.Back) {
	switch {
	case b.Stuck != "":
		s.Stuck++
	case b.Failed:
		s.Retried++
	default:
		s.Returned++
	}
}

// Stats are counters since the start, and what is under way.
type Stats struct {
	Polls      int64 // for due work
	Claimed    int64 // commands that were due, or whose lease had run out
	TakenOver  int64 // of those, the latter
	Decided    int64 // scheduled commands
	Succeeded  int64 // activities
	Failed     int64 // for good, by their own errors
	Cancelled  int64
	Abandoned  int64 // given up because their workers were lost too often
	Undone     int64 // effects
	Retried    int64 // attempts that failed and are to be repeated
	Stuck      int64 // commands that were left to an operator
	Returned   int64 // commands given back without an attempt that failed
	Parked     int64 // scheduled commands set aside until the end of a pause
	Heartbeats int64 // leases prolonged
	Lost       int64 // leases lost while an attempt was under way

	Busy int // workers, and scheduled commands being decided
	Held int // leases
}

// Stats reads the counters.
func (r *Runner) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	var now Stats
	r.stats.count(func(s *Stats) { now = *s })
	now.Busy, now.Held = r.slots.busy, len(r.held)
	return now
}
