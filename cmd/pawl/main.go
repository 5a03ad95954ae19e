// Pawl with the example workflows: an order and a traffic fine. Your own service is as short; see package pawl.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/cmd/pawl/demo"
	"github.com/pawlhq/pawl/cmd/pawl/shop"
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/examples/fines/replay"
)

func main() { os.Exit(cli.Execute(command())) }

func command() *cobra.Command {
	root := shop.Command()
	root.AddCommand(demoCommand(), replayCommand())
	return root
}

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

func replayCommand() *cobra.Command {
	var data, tenant string
	var events int64
	c := &cobra.Command{
		Use:   "replay",
		Short: "Replay a log of traffic fines, every event submitted twice",
		Long: `Replay a log of traffic fines: every event is submitted by two callers at the
same time, over HTTP and from Go. Then what is durable is compared with an
independent fold of the same log. The exit code is 1 when anything differs.

Replaying into the same tenant again within a day replays the stored answers and
changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if events < 0 {
				return usage.Errorf("--events is negative")
			}
			log, err := replay.Find(data, events)
			if err != nil {
				return err
			}
			return runReplay(c, replay.Config{Log: log, Tenant: tenant})
		},
	}
	flags.Tenant(c, &tenant, "register", "whose fines they are; it must hold nothing else")
	c.Flags().StringVar(&data, "data", os.Getenv("PAWL_DATA"),
		"folder of the log road_traffic_fines.csv.gz; default is PAWL_DATA, or else a log is made up")
	c.Flags().Int64Var(&events, "events", 0, "how many events of it (default all)")
	return c
}

func runReplay(c *cobra.Command, r replay.Config) (err error) {
	ctx, config := c.Context(), cli.ConfigOf(c, fines.Workflow)
	config.Address = "127.0.0.1:0"
	config.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
	service, err := pawl.Start(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		err = errors.Join(err, service.Stop(stopping))
	}()
	r.Targets = []replay.Target{replay.HTTP(service.URL(), nil), service.Engine()}
	r.Database, r.Verifier, r.Schema = service.Pool(), service.Engine().Admin(), config.Schema
	report, err := replay.Play(ctx, r, c.ErrOrStderr())
	if report != nil {
		_, printErr := fmt.Fprint(c.OutOrStdout(), report)
		err = errors.Join(err, printErr)
	}
	return err
}
