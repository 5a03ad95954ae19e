package inflight

import (
	"sync/atomic"

	"github.com/pawlhq/pawl/internal/decide"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type stats struct {
	looks, claimed, takenOver, heartbeats, lost              atomic.Int64
	decided, succeeded, failed, cancelled, abandoned, undone atomic.Int64
	retried, stuck, returned                                 atomic.Int64
}

// ended counts an outcome that is committed.
func (s *stats) ended(phase transitions.Phase, failure *workflow.Failure) {
	switch {
	case failure == nil && phase == transitions.Undoing:
		s.undone.Add(1)
	case failure == nil:
		s.succeeded.Add(1)
	case failure.Kind == workflow.FailureCancelled:
		s.cancelled.Add(1)
	case failure.Kind == workflow.FailureAbandoned:
		s.abandoned.Add(1)
	default:
		s.failed.Add(1)
	}
}

// givenBack counts a command that is on its way back.
func (s *stats) givenBack(b *decide.Back) {
	switch {
	case b.Stuck != "":
		s.stuck.Add(1)
	case b.Failed:
		s.retried.Add(1)
	default:
		s.returned.Add(1)
	}
}

// Stats are counters since the start, and what is under way.
type Stats struct {
	Looks      int64 // for due work
	Claimed    int64 // commands that were due, or whose lease had run out
	TakenOver  int64 // of those, the latter
	Decided    int64 // scheduled commands
	Succeeded  int64 // activities
	Failed     int64 // for good, by their own errors
	Cancelled  int64
	Abandoned  int64 // given up because their workers were lost too often
	Undone     int64 // effects
	Retried    int64 // attempts that failed and are to be repeated
	Stuck      int64 // commands that were left to a person
	Returned   int64 // commands given back without an attempt that failed
	Heartbeats int64 // leases prolonged
	Lost       int64 // leases lost while an attempt was under way

	Busy int // workers, and scheduled commands being decided
	Held int // leases
}

// Stats reads the counters.
func (r *Runner) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.stats
	return Stats{
		Looks: s.looks.Load(), Claimed: s.claimed.Load(), TakenOver: s.takenOver.Load(), Decided: s.decided.Load(),
		Succeeded: s.succeeded.Load(), Failed: s.failed.Load(), Cancelled: s.cancelled.Load(), Abandoned: s.abandoned.Load(),
		Undone: s.undone.Load(), Retried: s.retried.Load(), Stuck: s.stuck.Load(), Returned: s.returned.Load(),
		Heartbeats: s.heartbeats.Load(), Lost: s.lost.Load(), Busy: r.slots.busy, Held: len(r.held),
	}
}
