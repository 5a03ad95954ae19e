package ops

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/internal/cli/output"
	"github.com/pawlhq/pawl/internal/usage"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) versionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "versions",
		Short: "List the versions of workflows, their instances, and the nodes that know them",
		Long: `List the versions of workflows that have ever run on this database: which one
new instances begin with, how many instances each still has, by state, and which
nodes that serve know it and which do not. A version without open instances
can be left out of the next build. Large counts are as those of ops counts.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{"workflow", ">version", "begins", ">open", "states", "nodes", "nodes without it"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) ([]api.WorkflowVersion, bool, error) {
				found, err := e.VersionsInUse(ctx)
				return api.VersionsOf(found), false, err
			}, func(v *api.WorkflowVersion) []string {
				var states []string
				for _, s := range v.States {
					states = append(states, fmt.Sprint(s.State, " ", output.Count(s.Count, !s.Exact)))
				}
				begins := ""
				if v.Begins {
					begins = "new ones"
				}
				return []string{v.Workflow, fmt.Sprint(v.Version), output.OrNone(begins), output.Count(v.Open, !v.Exact),
					output.OrNone(strings.Join(states, ", ")), output.OrNone(strings.Join(v.Nodes, ", ")), output.OrNone(strings.Join(v.NodesWithout, ", "))}
			})
		},
	}
}

// begun is what was said of new instances.
type begun struct {
	Workflow string `json:"workflow"`
	Version  int    `json:"version"`
}

func (o *ops) beginCommand() *cobra.Command {
	var by string
	c := &cobra.Command{
		Use:   "begin WORKFLOW VERSION",
		Short: "Say with which version new instances of a workflow begin",
		Long: `Say with which version new instances of a workflow begin, on all nodes: at most
with this one, also where a node knows a newer one. With "newest" as the version
each node begins with the newest that it knows, as it does when nothing is said. Nodes
notice within about ten seconds. Instances that have begun stay on their version.`,
		Args: flags.Operands("WORKFLOW", "VERSION"),
		RunE: func(c *cobra.Command, args []string) error {
			version := 0
			if args[1] != "newest" {
				var err error
				if version, err = strconv.Atoi(args[1]); err != nil || version < 1 {
					return usage.Errorf("%q is neither a version from 1 on nor \"newest\"", args[1])
				}
			}
			return o.change(c, begun{args[0], version}, fmt.Sprintf("%s: new instances begin with version %s", args[0], args[1]),
				func(ctx context.Context, e *engine.Engine) error { return e.BeginVersion(ctx, args[0], version, by) })
		},
	}
	c.Flags().StringVar(&by, "by", transitions.DefaultActor, "who says so, for the record")
	return c
}
