package relay

import "sync/atomic"

type stats struct {
	polls, claimed, takenOver, lost   atomic.Int64
	stores, delivered, failed, parked atomic.Int64
	logs                              atomic.Int64 // in memory
}

// Stats are counters since the start, over all sinks that this node delivers to.
type Stats struct {
	Polls     int64 // of the state of the sinks
	Claimed   int64 // leases
	TakenOver int64 // of these, from nodes that had not released them
	Lost      int64 // leases that were taken over or could not be renewed
	Stored    int64 // batches of cursors, dead letters and leases
	Delivered int64 // events, as stored
	Failed    int64 // attempts
	Parked    int64 // events that became dead letters
}

func (r *Relay) Stats() Stats {
	s := &r.stats
	return Stats{
		Polls: s.polls.Load(), Claimed: s.claimed.Load(), TakenOver: s.takenOver.Load(), Lost: s.lost.Load(), Stored: s.stores.Load(),
		Delivered: s.delivered.Load(), Failed: s.failed.Load(), Parked: s.parked.Load(),
	}
}
