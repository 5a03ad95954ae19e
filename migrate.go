package pawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

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
			return migrate(c.Context(), ConfigOf(c), c.OutOrStdout(), slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil)))
		},
	}
}

func migrate(ctx context.Context, c Config, out io.Writer, log *slog.Logger) (err error) {
	if err := schema.CheckName(c.Schema); err != nil {
		return &UsageError{Err: err}
	}
	d, err := openDatabase(ctx, c.Database, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	applied, err := schema.Migrate(ctx, d.pool, c.Schema)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "schema %s is at version %d, %d applied now\n", c.Schema, len(schema.Migrations), applied)
	return err
}
