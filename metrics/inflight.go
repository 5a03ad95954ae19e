package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/engine"
)

var (
	looks      = counter("pawl_inflight_looks_total", "Polls for due work.")
	claimed    = counter("pawl_inflight_claimed_total", "Commands in flight that this node claimed.")
	takenOver  = counter("pawl_inflight_taken_over_total", "Of those, the ones that it took over from a node whose lease had run out.")
	ended      = counter("pawl_inflight_ended_total", "Ends of attempts by outcome: decided (a scheduled command), succeeded, failed, cancelled, abandoned (given up), undone (an effect).", "outcome")
	retried    = counter("pawl_inflight_retries_total", "Attempts that failed and are to be repeated.")
	becameHard = counter("pawl_inflight_stuck_total", "Commands that were left to a person.")
	returned   = counter("pawl_inflight_returned_total", "Commands that were given back without an attempt that failed.")
	heartbeats = counter("pawl_inflight_heartbeats_total", "Leases that were prolonged.")
	leasesLost = counter("pawl_inflight_leases_lost_total", "Leases that were lost while an attempt was under way.")
	busy       = gauge("pawl_inflight_busy_workers", "Workers, and scheduled commands being decided.")
	held       = gauge("pawl_inflight_leases", "Leases that this node holds.")
)

var inFlightKinds = []kind{
	looks, claimed, takenOver, ended, retried, becameHard, returned, heartbeats, leasesLost, busy, held,
}

func sendInFlight(ch chan<- prometheus.Metric, s engine.InFlightStats) {
	send(ch, looks, s.Polls)
	send(ch, claimed, s.Claimed)
	send(ch, takenOver, s.TakenOver)
	for outcome, n := range map[string]int64{"decided": s.Decided, "succeeded": s.Succeeded, "failed": s.Failed, "cancelled": s.Cancelled,
		"abandoned": s.Abandoned, "undone": s.Undone} {
		send(ch, ended, n, outcome)
	}
	send(ch, retried, s.Retried)
	send(ch, becameHard, s.Stuck)
	send(ch, returned, s.Returned)
	send(ch, heartbeats, s.Heartbeats)
	send(ch, leasesLost, s.Lost)
	send(ch, busy, s.Busy)
	send(ch, held, s.Held)
}
