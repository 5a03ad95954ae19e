package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/service"
)

func ticketsCommand() *cobra.Command {
	return flags.Group("tickets", "Tickets, which let a browser do a little for a while", rotateTicketsCommand())
}

func rotateTicketsCommand() *cobra.Command {
	var drop, asJSON bool
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Have tickets signed with a new key",
		Long: `Have tickets signed with a new key, which happens every day by itself. Tickets
that there are stay good until their end.

With --drop all other keys are removed, and every ticket that there is ends, with
its streams: after somebody has read the database or a backup of it, who could
have made tickets of his own. Nodes notice within five seconds.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := ConfigOf(c)
			config.Log = logOf(c, slog.LevelWarn)
			if err := service.RotateTicketKeys(c.Context(), config, drop); err != nil {
				return err
			}
			if asJSON {
				return output.JSON(c.OutOrStdout(), map[string]bool{"rotated": true, "dropped": drop})
			}
			told := "tickets are signed with a new key"
			if drop {
				told += ", and all others are removed"
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), told)
			return err
		},
	}
	flags.Output(c, &asJSON)
	c.Flags().BoolVar(&drop, "drop", false, "remove all other keys: every ticket that there is ends")
	return c
}
