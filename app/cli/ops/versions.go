package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) versionsCommand() *cobra.Command {
	var node string
	c := &cobra.Command{
		Use:   "versions",
		Short: "List the versions of workflows, their instances, and the nodes that know them",
		Long: `List the versions of workflows that have ever run on this database: the default
version of new instances ("as said" if ops begin set it), the number of instances
of each version, by state, and the live nodes with and without it. A version without
open instances can be left out of the next build. Large counts are estimates, as in
ops counts.

With --node a node answers. If it requires a credential, PAWL_TOKEN has an API key or
a token with the grant operate:all.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{"workflow", ">version", "begins", ">open", "states", "nodes", "nodes without it"}
			if node != "" {
				found, err := askNodeFor[api.VersionList](c.Context(), node, "v1/ops/versions")
				if err != nil {
					return err
				}
				return show(o, c, header, found.Versions, false, versionRow, versionPage)
			}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) ([]inspect.WorkflowVersion, bool, error) {
				found, err := e.Admin().VersionsInUse(ctx)
				return found, false, err
			}, versionRow, versionPage)
		},
	}
	nodeFlag(c, &node)
	return c
}

func versionPage(list []inspect.WorkflowVersion) any { return api.VersionList{Versions: list} }

func versionRow(v *inspect.WorkflowVersion) []string {
	var states []string
	for _, s := range v.States {
		states = append(states, fmt.Sprint(s.State, " ", output.Count(s.Count, !s.Exact)))
	}
	begins := ""
	switch {
	case v.Said:
		begins = "new ones, as said"
	case v.Begins:
		begins = "new ones"
	}
	return []string{v.Workflow, fmt.Sprint(v.Version), output.OrNone(begins), output.Count(v.Open, !v.Exact),
		output.OrNone(strings.Join(states, ", ")), output.OrNone(strings.Join(v.Nodes, ", ")), output.OrNone(strings.Join(v.NodesWithout, ", "))}
}

// begun is what was said of new instances.
type begun struct {
	Workflow string `json:"workflow"`
	Version  int    `json:"version"`         // 0: the newest
	Begins   int    `json:"begins,omitzero"` // which one that is, 0 where none has run yet
}

// told is what was said, with which version that is, of those that have run.
func (o *ops) told(c *cobra.Command, b begun, versions []inspect.WorkflowVersion) error {
	if b.Begins = b.Version; b.Version > 0 {
		return o.say(c, b, "%s: new instances begin with version %d", b.Workflow, b.Version)
	}
	now := ""
	for _, v := range versions {
		if v.Workflow == b.Workflow && v.Begins {
			b.Begins, now = v.Version, fmt.Sprintf(", now %d", v.Version)
		}
	}
	return o.say(c, b, "%s: new instances begin with the newest version that a node knows%s", b.Workflow, now)
}

func (o *ops) beginCommand() *cobra.Command {
	var by, node string
	c := &cobra.Command{
		Use:   "begin WORKFLOW VERSION",
		Short: "Set the default version of a workflow",
		Long: `Set the default version of a workflow on all nodes. New instances begin with it, or
with the newest older version on a node that does not know it. With "newest" as the
version each node uses the newest version that it knows, which is the default.
Existing instances keep their version. The command returns when every live node has
confirmed; if one does not, it fails after 40 seconds and names that node.

With --node a node sets it. If it requires a credential, PAWL_TOKEN has an API key or
a token with the grant operate:all, whose actor is recorded.`,
		Args: flags.Operands("WORKFLOW", "VERSION"),
		RunE: func(c *cobra.Command, args []string) error {
			version := 0
			if args[1] != "newest" {
				var err error
				if version, err = strconv.Atoi(args[1]); err != nil || version < 1 {
					return usage.Errorf("%q is neither a version from 1 on nor \"newest\"", args[1])
				}
			}
			done := begun{Workflow: args[0], Version: version}
			if node != "" {
				if err := tellNode(c.Context(), node, done); err != nil {
					return err
				}
				found, err := askNodeFor[api.VersionList](c.Context(), node, "v1/ops/versions")
				if err != nil {
					return err
				}
				return o.told(c, done, found.Versions)
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				if err := e.Admin().BeginVersion(ctx, args[0], version, by); err != nil {
					return err
				}
				found, err := e.Admin().Rollout(ctx)
				if err != nil {
					return err
				}
				return o.told(c, done, found)
			})
		},
	}
	c.Flags().StringVar(&by, "by", transitions.DefaultActor, "who says so, for the record")
	nodeFlag(c, &node)
	flags.Before(c, func() error {
		if node != "" && c.Flags().Changed("by") {
			return usage.Errorf("--by goes with the database; with --node the credential says who it is")
		}
		return nil
	})
	return c
}

// tellNode tells a node with which version new instances begin.
func tellNode(ctx context.Context, node string, b begun) error {
	method, body := http.MethodDelete, io.Reader(nil)
	if b.Version != 0 {
		method, body = http.MethodPut, strings.NewReader(fmt.Sprintf(`{"version":%d}`, b.Version))
	}
	r, err := flags.AskServer(ctx, "node", node, method, "v1/ops/begins/"+url.PathEscape(b.Workflow), nil, body)
	if err != nil {
		return err
	}
	return askNode(r, nil)
}
