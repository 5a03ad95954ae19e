package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/inspect"
)

var (
	instances = sharedGauge("pawl_instances",
		"Instances by workflow, version of the definition, state, and whether it is a final one. Up to 10,000 of a kind are counted, fewer where tenants are many; what is more is an estimate of the planner's.",
		"workflow", "definition", "state", "open")
	instancesEstimated = sharedGauge("pawl_instances_estimated", "How many of the values of pawl_instances are estimates.")
)

var countKinds = []kind{instances, instancesEstimated}

func sendCounts(ch chan<- prometheus.Metric, c *inspect.Counts, _ time.Time) {
	estimated := 0
	for _, k := range c.Counts {
		send(ch, instances, k.Count, k.Workflow, strconv.Itoa(k.Definition), string(k.State), strconv.FormatBool(k.Open))
		if !k.Exact {
			estimated++
		}
	}
	send(ch, instancesEstimated, estimated)
}
