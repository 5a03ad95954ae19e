package relay

import "sync/atomic"

type stats struct {
	polls, claimed, takenOver, lost   atomic.Int64
	stores, delivered, failed, parked atomic.Int64
	logs                              atomic.Int64 // in memory
}

// Stats are counters since the start, over all sinks that this node delivers to.
type Stats struct {
	Polls     int64 // of how the sinks stand
	Claimed   int64 // leases
	TakenOver int64 // of those, from nodes that had not given them back
	Lost      int64 // leases that were taken away, or could not be prolonged
	Stored    int64 // batches: cursors, dead letters, leases
	Delivered int64 // events, as far as it is stored
	Failed    int64 // attempts
	Parked    int64 // events given up
}

// Stats reads the counters.
func (r *Relay) Stats() Stats {
	s := &r.stats
	return Stats{
		Polls: s.polls.Load(), Claimed: s.claimed.Load(), TakenOver: s.takenOver.Load(), Lost: s.lost.Load(), Stored: s.stores.Load(),
		Delivered: s.delivered.Load(), Failed: s.failed.Load(), Parked: s.parked.Load(),
	}
}
