package main

import (
	"context"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/bench"
	"github.com/pawlhq/pawl/internal/localpg"
)

// measured is a private server of its own, as durable as a real one, that counts
// statements.
var measured = localpg.Options{Ephemeral: true, Settings: map[string]string{
	"fsync": "on", "shared_preload_libraries": "pg_stat_statements",
}}

func benchCommand() *cobra.Command {
	var config bench.Config
	var only string
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure, beside a floor and a ceiling of plain SQL",
		Long: `Measure how fast commands become durable, beside the same rows written by plain
SQL: a transaction for each command, and large transactions. The tables are in
the schema pawl_bench, which is dropped in the end. Nothing else should use the
server meanwhile.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if only != "" {
				if config.Only, err = regexp.Compile(only); err != nil {
					return &pawl.UsageError{Err: fmt.Errorf("--only: %w", err)}
				}
			}
			config.Progress = func(line string) { c.PrintErrln(line) }
			return withDatabase(c, measured, func(ctx context.Context, url string) error {
				config.URL = url
				return bench.Run(ctx, config, c.OutOrStdout())
			})
		},
	}
	flags := c.Flags()
	flags.BoolVar(&config.Quick, "quick", false, "one short round, for a first impression")
	flags.IntVar(&config.Rounds, "rounds", 0, "how often each scenario is run (default 3)")
	flags.DurationVar(&config.Duration, "duration", 0, "how long each scenario is measured in a round (default 3s)")
	flags.StringVar(&only, "only", "", "a regular expression for the names of the scenarios to run")
	return c
}
