package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

var (
	purgeBatches   = counter("pawl_retention_batches_total", "Transactions that looked for keys that are due.")
	purged         = counter("pawl_retention_keys_total", "Keys that retention saw to: expired (answers that became tombstones), forgotten (tombstones that were deleted), abandoned (failed because nobody went on with them), archived (went to the history).", "outcome")
	dropped        = counter("pawl_retention_dropped_partitions_total", "Partitions that retention dropped.")
	purgeFailures  = counter("pawl_retention_failures_total", "Turns of retention that failed, and were tried again.")
	retentionHeld  = sharedGauge("pawl_retention_served", "Whether a node does retention: 1 or 0.")
	partitions     = sharedGauge("pawl_partitions", "Partitions of the table.", "table")
	partitionBytes = sharedGauge("pawl_partition_bytes", "Size of the table's partitions, with their indexes.", "table")
	partitionsKept = sharedGauge("pawl_partitions_held", "Partitions past their age that somebody still needs.", "table")
)

var retentionKinds = []kind{
	purgeBatches, purged, dropped, purgeFailures, retentionHeld, partitions, partitionBytes, partitionsKept,
}

func sendPurged(ch chan<- prometheus.Metric, s engine.RetentionStats) {
	send(ch, purgeBatches, s.Batches)
	for outcome, n := range map[string]int64{"expired": s.Expired, "forgotten": s.Forgotten, "abandoned": s.Abandoned, "archived": s.Archived} {
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
