package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/internal/service"
	"github.com/pawlhq/pawl/schema"
)

func migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the tables up to date",
		Long: `Bring the tables up to date, each step in a transaction of its own. Several
nodes may do it at once. "serve" does it too; run this first where the program
that serves may not change tables.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := ConfigOf(c)
			config.Log = logOf(c, slog.LevelInfo)
			applied, err := service.Migrate(c.Context(), config)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "schema %s is at version %d, %d applied now\n", config.Schema, len(schema.Migrations), applied)
			return err
		},
	}
}
