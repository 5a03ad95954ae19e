package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/app/usage"
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
			if bench.IsNode() {
				return bench.RunNode(c.Context())
			}
			if only != "" {
				if config.Only, err = regexp.Compile(only); err != nil {
					return usage.Errorf("--only: %w", err)
				}
			}
			config.Progress = func(line string) { c.PrintErrln(line) }
			return runBench(c, config)
		},
	}
	flags := c.Flags()
	flags.IntVar(&config.Rounds, "rounds", 0, "how often each scenario is run (default 3)")
	flags.DurationVar(&config.Duration, "duration", 0, "how long each scenario is measured in a round (default 3s)")
	flags.IntVar(&config.Large, "large", 0,
		"measure on full tables beside empty ones, instead of all else; the number is how many commands are loaded")
	flags.Lookup("large").NoOptDefVal = "10000000"
	flags.IntVar(&config.Aged, "aged", 0, "how many commands are done before, where an old snapshot is open (default 20,000)")
	flags.IntVar(&config.Migrated, "migrated", 0, "how many instances are taken to another version beside commands (default 10,000)")
	flags.StringVar(&config.NATS, "nats", os.Getenv("NATS_URL"),
		"a server with JetStream, for what needs one; default is NATS_URL, or else it is left out")
	flags.StringVar(&only, "only", "", "a regular expression for the names of the scenarios to run")
	return c
}

// runBench measures on the database that the flags name, or else on a private server.
func runBench(c *cobra.Command, config bench.Config) error {
	if config.URL = pawl.ConfigOf(c).Database; config.URL != "" {
		return bench.Run(c.Context(), config, c.OutOrStdout())
	}
	options := measured
	options.Log = func(format string, args ...any) { c.PrintErrf(format+"\n", args...) }
	if config.Large > 0 {
		// What does not fit into it is read from the system's cache, page by page.
		options.Settings = maps.Clone(options.Settings)
		options.Settings["shared_buffers"] = "8GB"
	}
	server, err := localpg.Start(c.Context(), options)
	if err != nil {
		return fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	config.URL = server.URL()
	return errors.Join(bench.Run(c.Context(), config, c.OutOrStdout()), server.Stop())
}
