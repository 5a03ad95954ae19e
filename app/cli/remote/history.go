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
)

func historyCommand(a asking) *cobra.Command {
	var after int64
	var limit int
	c := &cobra.Command{
		Use:   "history INSTANCE",
		Short: "List the transitions of an instance, oldest first",
		Long: `List the transitions of an instance, oldest first, as its audit rows say. The reason begins
with when something has happened that was imported, and with the versions of a migration.
With -o json each has its payload and the data after it.

` + instanceUsage,
		Args: flags.Operands("INSTANCE"),
		RunE: func(c *cobra.Command, args []string) error {
			of, err := a.instance(args[0])
			if err != nil {
				return err
			}
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				header := []string{">version", "at", "transition", "from", "to", "actor", "key", "reason"}
				_, err := list(&a, c, asked.History(ctx, of, after), limit, header, func(e *client.Entry) []string {
					return []string{fmt.Sprint(e.Version), output.Moment(e.At), e.Transition, output.OrNone(string(e.From)), string(e.To),
						e.Actor, e.Key, output.Why(e.Transition, e.Cause, e.CausedBy, e.Payload, e.Reason)}
				}, func(found []client.Entry, more bool) (any, error) {
					id, err := idOfTarget(ctx, asked, of, args[0])
					page := wire.History{Instance: id, Entries: found}
					if more {
						page.NextAfter = found[len(found)-1].Version
					}
					return page, err
				})
				return err
			})
		},
	}
	a.flags(c)
	c.Flags().Int64Var(&after, "after", 0, "only those that made a later version than this one")
	flags.Limit(c, &limit)
	flags.Before(c, func() error {
		if after < 0 {
			return usage.Errorf("--after %d is negative", after)
		}
		return nil
	})
	return c
}
