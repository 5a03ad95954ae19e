package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/inspect"
)

var (
	instances = sharedGauge("pawl_instances",
		"Instances by workflow, version of the definition, state, and whether it is a final one. Up to 10,000 of a kind are counted, fewer where tenants are many; what is more is an estimate of the planner's. A kind that this process has seen stays, with 0, when no instance is of it any more.",
		"workflow", "definition", "state", "open")
	instancesEstimated = sharedGauge("pawl_instances_estimated", "How many of the values of pawl_instances are estimates.")
)

// remembered reads counts with those kinds too that none is of any more and were seen
// before: a series that ended would keep its last value in sums and alerts for a while.
// There are as many as states of the versions of workflows. It is for one reading.
func remembered(read func(context.Context) (inspect.Counts, error)) func(context.Context) (inspect.Counts, error) {
	seen := map[inspect.InstanceCount]bool{}
	return func(ctx context.Context) (inspect.Counts, error) {
		c, err := read(ctx)
		if err != nil {
			return c, err
		}
		now := map[inspect.InstanceCount]bool{}
		for _, k := range c.Counts {
			k.Count, k.Exact = 0, false
			seen[k], now[k] = true, true
		}
		for k := range seen {
			if !now[k] {
				k.Exact = c.Exact // what has fallen out of an estimate need not be gone
				c.Counts = append(c.Counts, k)
			}
		}
		return c, nil
	}
}

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
