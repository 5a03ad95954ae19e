package commit

import (
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/internal/kernel/decide"
)

type stats struct {
	verdicts    [decide.KeyVerdicts]atomic.Int64
	groups      atomic.Int64
	again       atomic.Int64
	lost        atomic.Int64
	splits      atomic.Int64
	toRetryLane atomic.Int64
	refused     atomic.Int64
}

// count takes an attempt of a caller's that was answered.
func (s *stats) count(o *op) {
	if o.p.Resumed == nil {
		s.verdicts[o.verdict].Add(1)
	}
}

// Stats are counters since the start.
type Stats struct {
	Claims  map[string]int64 // answered commands by what their key amounted to
	Groups  int64            // committed
	Again   int64            // runs that another transaction won
	Lost    int64            // runs that lost their connection
	Splits  int64            // groups split to find the command that could not be stored
	Aside   int64            // commands that went to the retry lane
	Refused int64            // commands refused because there was no room for them
	Waiting int              // commands that wait for a committer now
	Working time.Duration    // for how long a committer was at work, one at least
}

// Stats reads the counters.
func (pipe *Pipeline) Stats() Stats {
	s := Stats{Claims: map[string]int64{}, Groups: pipe.stats.groups.Load(), Again: pipe.stats.again.Load(), Lost: pipe.stats.lost.Load(),
		Splits: pipe.stats.splits.Load(), Aside: pipe.stats.toRetryLane.Load(), Refused: pipe.stats.refused.Load(),
		Working: pipe.queue.workedFor()}
	for c := range decide.KeyVerdicts {
		s.Claims[decide.KeyVerdict(c).String()] = pipe.stats.verdicts[c].Load()
	}
	s.Waiting = pipe.queue.depth()
	return s
}
