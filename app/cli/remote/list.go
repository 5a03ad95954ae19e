package remote

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/workflow"
)

func listCommand(a asking) *cobra.Command {
	var f client.InstanceFilter
	var states []string
	var open bool
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List instances",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, s := range states {
				f.States = append(f.States, workflow.State(s))
			}
			if c.Flags().Changed("open") {
				f.Open = &open
			}
			a.workflow = f.Workflow
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				header := []string{"id", "workflow", "business key", "state", ">version", "updated"}
				found, err := list(&a, c, asked.Instances(ctx, f), limit, header, func(i *client.Instance) []string {
					return []string{i.ID.String(), i.Workflow, output.OrNone(i.BusinessKey), string(i.State), fmt.Sprint(i.Version),
						output.Moment(i.UpdatedAt)}
				}, func(found []client.Instance, _ bool) (any, error) { return wire.InstancePage{Instances: found}, nil })
				if err == nil && found == 0 {
					a.warnOfStates(ctx, c, asked, f.States)
				}
				return err
			})
		},
	}
	a.flags(c)
	own := c.Flags()
	own.StringVar(&f.Workflow, "workflow", "", "only those of this workflow")
	own.IntVar(&f.Definition, "definition", 0, "only those that are on this version")
	own.StringArrayVar(&states, "state", nil, "only those in this state; may be given several times")
	own.BoolVar(&open, "open", false, "only those that are in no final state, or with --open=false those that are")
	own.StringVar(&f.BusinessKey, "business-key", "", "only the one with this business key, with --workflow")
	own.StringToStringVar(&f.Attributes, "attr", nil, "only those with this attribute, as NAME=VALUE; may be given several times. "+
		"NAME.from=VALUE, NAME.before=VALUE and NAME.prefix=VALUE select a range of values, compared as text")
	own.BoolVar(&f.NewestUpdateFirst, "newest", false, "those first that have changed last")
	flags.Limit(c, &limit)
	flags.Before(c, func() error {
		if c.Flags().Changed("definition") && f.Definition < 1 {
			return usage.Errorf("--definition %d is not a version from 1 on", f.Definition)
		}
		return flags.NotEmpty(c, "workflow", "business-key")
	})
	return c
}
