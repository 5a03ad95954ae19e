package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/engine"
)

func (o *ops) nodesCommand() *cobra.Command {
	var node string
	c := &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes, what they know, and what each does",
		Long: `List the nodes that run or have run lately, the oldest first: the program of each, the
versions of workflows that it knows, its work for all nodes, the sinks that it
delivers to, and the number of its leases on commands in flight.

A node without a sign of life for half a minute is "not heard of"; other nodes take
over its work.

With --node a node answers. If it requires a credential, PAWL_TOKEN has an API key or
a token with the grant operate. The leases and sinks are then those of its tenant.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{"node", "build", "since", "seen", "versions", "does", ">leases"}
			if node != "" {
				found, err := askNodeFor[api.NodeList](c.Context(), node, "v1/ops/nodes")
				if err != nil {
					return err
				}
				return show(o, c, header, found.Nodes, false, nodeRow, nodePage)
			}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) ([]api.Node, bool, error) {
				found, err := e.Admin().Nodes(ctx, "")
				return api.NodesOf(found), false, err
			}, nodeRow, nodePage)
		},
	}
	nodeFlag(c, &node)
	return c
}

func nodePage(list []api.Node) any { return api.NodeList{Nodes: list} }

func nodeRow(n *api.Node) []string {
	var versions []string
	for _, v := range n.Versions {
		versions = append(versions, fmt.Sprint(v.Workflow, " ", v.Version))
	}
	seen := output.Moment(n.Seen)
	if !n.Alive {
		seen += ", not heard of"
	}
	leases := fmt.Sprint(n.Leases)
	if n.AtLeast {
		leases += " or more"
	}
	return []string{n.Name, n.Build, output.Moment(n.Since), seen, output.OrNone(strings.Join(versions, ", ")),
		output.OrNone(doings(n)), leases}
}

// doings says what a node does for all.
func doings(n *api.Node) string {
	does := append([]string{}, n.Leads...)
	for _, s := range n.Sinks {
		does = append(does, "sink "+s)
	}
	for _, id := range n.Migrations {
		does = append(does, fmt.Sprint("migration ", id))
	}
	return strings.Join(does, ", ")
}
