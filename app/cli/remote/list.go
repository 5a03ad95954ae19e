package remote

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/client"
)

func listCommand(a asking) *cobra.Command {
	var f client.InstanceFilter
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List instances",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.States, f.Open = flags.StatesOf(c)
			f.Workflow = c.Flag("workflow").Value.String()
			f.Definition, _ = c.Flags().GetInt("definition")
			f.Attributes, _ = c.Flags().GetStringToString("attr")
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
	flags.Selection(c)
	c.Flag("attr").Usage += ". NAME.from=VALUE, NAME.before=VALUE and NAME.prefix=VALUE select a range of values, compared as text"
	c.Flags().StringVar(&f.BusinessKey, "business-key", "", "only the one with this business key, with --workflow")
	c.Flags().BoolVar(&f.NewestUpdateFirst, "newest", false, "the last updated first")
	flags.Limit(c, &limit)
	flags.Before(c, func() error { return flags.NotEmpty(c, "business-key") })
	return c
}
