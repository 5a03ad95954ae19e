package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/inspect"
)

var (
	versionNodes = sharedGauge(
		"pawl_version_nodes",
		"Nodes that serve, by whether they know the version of the workflow. Versions are all that have ever run here.",
		"workflow",
		"definition",
		"known",
	)
	versionBegins = sharedGauge(
		"pawl_version_begins",
		"1: new instances of the workflow begin with this version, where a node knows it.",
		"workflow",
		"definition",
	)
)

func sendVersions(ch chan<- prometheus.Metric, list *[]inspect.WorkflowVersion, _ time.Time) {
	for i := range *list {
		v := &(*list)[i]
		definition := strconv.Itoa(v.Version)
		send(ch, versionNodes, len(v.Nodes), v.Workflow, definition, "true")
		send(ch, versionNodes, len(v.NodesWithout), v.Workflow, definition, "false")
		begins := 0
		if v.Begins {
			begins = 1
		}
		send(ch, versionBegins, begins, v.Workflow, definition)
	}
}
