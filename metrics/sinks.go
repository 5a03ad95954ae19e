package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/outbox/relay"
)

var (
	relayPolls     = counter("pawl_relay_looks_total", "Polls of how the sinks stand.")
	relayClaimed   = counter("pawl_relay_claimed_total", "Sinks that this node began to deliver to.")
	relayTakenOver = counter("pawl_relay_taken_over_total", "Of those, the ones that it took over from a node that had not given them back.")
	relayLost      = counter("pawl_relay_leases_lost_total", "Sinks that were taken from this node, or whose lease it could not prolong.")
	relayStored    = counter("pawl_relay_writes_total", "Writes of the relay to the database: cursors, dead letters, leases.")
	relayDelivered = counter("pawl_relay_delivered_events_total", "Events that this node delivered, repetitions too.")
	relayFailed    = counter("pawl_relay_failed_attempts_total", "Attempts of this node to deliver that failed.")
	relayParked    = counter("pawl_relay_parked_events_total", "Events that this node gave up, and that wait for an operator.")

	sinkLag       = sharedGauge("pawl_sink_lag_transitions", "Transitions that the sink has not got, over all tenants.", "sink")
	sinkOldest    = sharedGauge("pawl_sink_lag_seconds", "Age of the oldest transition that the sink has not got; 0 for none.", "sink")
	sinkBehind    = sharedGauge("pawl_sink_behind_tenants", "Tenants whose logs the sink has not got all of.", "sink")
	sinkStuck     = sharedGauge("pawl_sink_stuck_tenants", "Tenants whose cursor cannot go on.", "sink")
	sinkDead      = sharedGauge("pawl_sink_dead_letters", "Events that were given up and wait for an operator.", "sink")
	sinkAside     = sharedGauge("pawl_sink_aside_events", "Events set aside: they are tried again, or wait behind one that is.", "sink")
	sinkFailures  = sharedGauge("pawl_sink_failures", "Attempts in a row that failed for the receiver as a whole; 0 when it takes events.", "sink")
	sinkPaused    = sharedGauge("pawl_sink_paused", "Whether the sink is paused: 1 or 0.", "sink")
	sinkServed    = sharedGauge("pawl_sink_served", "Whether a node delivers to the sink: 1 or 0.", "sink")
	sinkDelivered = sharedCounter("pawl_sink_delivered_events_total", "Events that all nodes delivered to the sink, repetitions too.", "sink")
	sinkFailed    = sharedCounter("pawl_sink_failed_attempts_total", "Attempts of all nodes to deliver to the sink that failed.", "sink")
	sinkParked    = sharedCounter("pawl_sink_parked_events_total", "Events of the sink that were given up by any node.", "sink")
)

var sinkKinds = []kind{
	relayPolls, relayClaimed, relayTakenOver, relayLost, relayStored, relayDelivered, relayFailed, relayParked, sinkLag,
	sinkOldest, sinkBehind, sinkStuck, sinkDead, sinkAside, sinkFailures, sinkPaused, sinkServed, sinkDelivered, sinkFailed,
	sinkParked,
}

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

// sendSinks takes its ages from this node's clock.
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
