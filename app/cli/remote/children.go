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

func childrenCommand(a asking) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "children INSTANCE",
		Short: "List the instances that one has started",
		Long: `List the instances that one has started, as they are now, in the order in which they
were started. "end" is the transition that the end of one causes. "problem" is "stuck" if
a command of the instance waits for an operator, and "deferred" if its end waits for
another state of the parent.

` + instanceUsage,
		Args: flags.Operands("INSTANCE"),
		RunE: func(c *cobra.Command, args []string) error {
			of, err := a.instance(args[0])
			if err != nil {
				return err
			}
			f := client.ChildFilter{Stuck: flags.OptionalBool(c, "stuck")}
			f.States, f.Open = flags.StatesOf(c)
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				header := []string{"id", "workflow", "state", ">version", "updated", "end", "problem"}
				_, err := list(&a, c, asked.Children(ctx, of, f), limit, header, func(i *client.Child) []string {
					return []string{i.ID.String(), i.Workflow, string(i.State), fmt.Sprint(i.Version), output.Moment(i.UpdatedAt), output.OrNone(i.End),
						output.OrNone(problemOf(i))}
				}, func(found []client.Child, _ bool) (any, error) {
					id, err := idOfTarget(ctx, asked, of, args[0])
					return wire.ChildPage{Instance: id, Children: found}, err
				})
				return err
			})
		},
	}
	a.flags(c)
	flags.States(c)
	c.Flags().Bool("stuck", false, "only those of which a command waits for an operator, or with --stuck=false the others")
	flags.Limit(c, &limit)
	return c
}

// problemOf names what is wrong with a child; "" if nothing is.
func problemOf(c *client.Child) string {
	switch {
	case c.Stuck:
		return "stuck"
	case c.Deferred:
		return "deferred"
	}
	return ""
}
