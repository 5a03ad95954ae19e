package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/relay"
)

var (
	purgeBatches = counter("pawl_retention_batches_total", "Transactions that looked for expired keys.")
	purged       = counter("pawl_retention_keys_total",
		"Keys that retention removed: expired (answers that became tombstones), forgotten (tombstones that were deleted), "+
			"abandoned (failed because no caller continued them), archived (moved to the history).", "outcome")
	dropped        = counter("pawl_retention_dropped_partitions_total", "Partitions that retention dropped.")
	purgeFailures  = counter("pawl_retention_failures_total", "Rounds of retention that failed and were repeated.")
	retentionHeld  = sharedGauge("pawl_retention_served", "Whether a node runs retention: 1 or 0.")
	partitions     = sharedGauge("pawl_partitions", "Partitions of the table.", "table")
	partitionBytes = sharedGauge("pawl_partition_bytes", "Size of the table's partitions, with their indexes.", "table")
	partitionsKept = sharedGauge("pawl_partitions_held", "Expired partitions that are still needed.", "table")
)

func sendPurged(ch chan<- prometheus.Metric, s engine.RetentionStats) {
	send(ch, purgeBatches, s.Batches)
	for outcome, n := range map[string]int64{"expired": s.Expired, "forgotten": s.Forgotten, "abandoned": s.Abandoned,
		"archived": s.Archived} {
		send(ch, purged, n, outcome)
	}
	send(ch, dropped, s.Dropped)
	send(ch, purgeFailures, s.Failures)
}

func sendRetention(ch chan<- prometheus.Metric, r *inspect.Retention, now time.Time) {
	send(ch, retentionHeld, truth(r.Node != "" && r.Until != nil && r.Until.After(now)))
	type sums struct{ count, bytes, held int64 }
	tables := map[string]sums{}
	for _, p := range r.Partitions {
		name := p.Name[:max(strings.LastIndexByte(p.Name, '_'), 0)]
		s := tables[name]
		s.count++
		s.bytes += p.Bytes
		if p.Over && p.Held != "" {
			s.held++
		}
		tables[name] = s
	}
	for name, s := range tables {
		send(ch, partitions, s.count, name)
		send(ch, partitionBytes, s.bytes, name)
		send(ch, partitionsKept, s.held, name)
	}
}

var (
	relayPolls     = counter("pawl_relay_polls_total", "Polls of the sinks' state.")
	relayClaimed   = counter("pawl_relay_claimed_total", "Sinks that this node has claimed.")
	relayTakenOver = counter("pawl_relay_taken_over_total", "Of those, sinks taken over from a node that had not released them.")
	relayLost      = counter("pawl_relay_leases_lost_total", "Sinks that this node lost, because their lease was taken or could not be renewed.")
	relayStored    = counter("pawl_relay_writes_total", "Writes of the relay to the database: cursors, dead letters, leases.")
	relayDelivered = counter("pawl_relay_delivered_events_total", "Events that this node delivered, repetitions too.")
	relayFailed    = counter("pawl_relay_failed_attempts_total", "Failed attempts of this node to deliver.")
	relayParked    = counter("pawl_relay_parked_events_total", "Events of this node that became dead letters.")

	sinkLag    = sharedGauge("pawl_sink_lag_transitions", "Transitions that the sink has not received, over all tenants.", "sink")
	sinkOldest = sharedGauge("pawl_sink_lag_seconds",
		"Age of the oldest transition that the sink has not received; 0 for none. With more than 32 tenants behind it is a lower "+
			"bound, from the 32 oldest cursors.", "sink")
	sinkBehind   = sharedGauge("pawl_sink_behind_tenants", "Tenants whose logs the sink has not received completely.", "sink")
	sinkStuck    = sharedGauge("pawl_sink_stuck_tenants", "Tenants whose cursor is blocked.", "sink")
	sinkDead     = sharedGauge("pawl_sink_dead_letters", "Dead letters that wait for an operator.", "sink")
	sinkAside    = sharedGauge("pawl_sink_aside_events", "Deferred events: they are retried, or wait behind one that is.", "sink")
	sinkFailures = sharedGauge("pawl_sink_failures",
		"Consecutive failed attempts of the receiver as a whole; 0 when it accepts events.", "sink")
	sinkPaused    = sharedGauge("pawl_sink_paused", "Whether the sink is paused: 1 or 0.", "sink")
	sinkServed    = sharedGauge("pawl_sink_served", "Whether a node delivers to the sink: 1 or 0.", "sink")
	sinkDelivered = sharedCounter("pawl_sink_delivered_events_total", "Events that all nodes delivered to the sink, repetitions too.", "sink")
	sinkFailed    = sharedCounter("pawl_sink_failed_attempts_total", "Failed attempts of all nodes to deliver to the sink.", "sink")
	sinkParked    = sharedCounter("pawl_sink_parked_events_total", "Events of the sink that became dead letters, on all nodes.", "sink")
)

func sendRelay(ch chan<- prometheus.Metric, s relay.Stats) {
	send(ch, relayPolls, s.Polls)
	send(ch, relayClaimed, s.Claimed)
	send(ch, relayTakenOver, s.TakenOver)
	send(ch, relayLost, s.Lost)
	send(ch, relayStored, s.Stored)
	send(ch, relayDelivered, s.Delivered)
	send(ch, relayFailed, s.Failed)
	send(ch, relayParked, s.Parked)
}

// sendSinks computes ages with this node's clock.
func sendSinks(ch chan<- prometheus.Metric, list *[]inspect.SinkInfo, now time.Time) {
	for _, s := range *list {
		send(ch, sinkLag, s.Lag, s.Name)
		send(ch, sinkOldest, age(now, s.Oldest), s.Name)
		send(ch, sinkBehind, s.Behind, s.Name)
		send(ch, sinkStuck, s.Stuck, s.Name)
		send(ch, sinkDead, s.DeadLetters, s.Name)
		send(ch, sinkAside, s.Aside, s.Name)
		send(ch, sinkFailures, s.Failures, s.Name)
		send(ch, sinkPaused, truth(s.Paused != nil), s.Name)
		send(ch, sinkServed, truth(s.Node != "" && s.LeaseEnds.After(now)), s.Name)
		send(ch, sinkDelivered, s.Delivered, s.Name)
		send(ch, sinkFailed, s.Failed, s.Name)
		send(ch, sinkParked, s.Parked, s.Name)
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
