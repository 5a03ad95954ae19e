package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/cmd/pawl/demo"
)

func demoCommand() *cobra.Command {
	var config demo.Config
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show what Pawl does, and stay up to be explored",
		Long: `Show what Pawl does: orders that are paid at a provider and a traffic fine, over
HTTP and WebSocket, with each exchange printed and checked. A second node is
started, and killed at work. Then the service stays up to be explored.

The tables are made anew at each start: on a private PostgreSQL of the demo's own,
or in the schema pawl_demo of the database that was named.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config.Database = cli.ConfigOf(c).Database
			config.Out = c.OutOrStdout()
			config.Color = progress.Terminal(config.Out) && os.Getenv("NO_COLOR") == ""
			return demo.Run(c.Context(), config)
		},
	}
	c.Flags().StringVar(&config.Address, "address", "",
		"loopback host and port to listen on (default "+pawl.DefaultAddress+", or a free port)")
	c.Flags().BoolVar(&config.Once, "once", os.Getenv("ONCE") != "" && os.Getenv("ONCE") != "0",
		"end after the story; default is whether ONCE is set")
	return c
}
