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
	"github.com/pawlhq/pawl/examples/fines"
	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/internal/localpg"
	"github.com/pawlhq/pawl/internal/replay"
	"github.com/pawlhq/pawl/internal/usage"
)

// replaying is one run of the command replay.
type replaying struct {
	data   string
	events int64
	tenant string
	via    string
}

func replayCommand() *cobra.Command {
	var r replaying
	c := &cobra.Command{
		Use:   "replay",
		Short: "Replay a log of traffic fines, every event submitted twice",
		Long: `Replay a log of traffic fines: every event is submitted by two callers at the
same time. Then what is durable is compared with an independent fold of the same
log. The exit code is 1 when anything differs.

Replaying into the same tenant again within a day replays the stored answers and
changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case r.via != "both" && r.via != "http" && r.via != "go":
				return usage.Errorf("--via %s is not both, http or go", r.via)
			case r.events < 0:
				return usage.Errorf("--events is negative")
			}
			return withDatabase(c, localpg.Options{}, func(ctx context.Context, url string) error { return r.run(ctx, c, url) })
		},
	}
	flags.Tenant(c, &r.tenant, "register", "whose fines they are; it must hold nothing else")
	c.Flags().StringVar(&r.data, "data", os.Getenv("PAWL_DATA"),
		"folder of the log "+replay.FileName+"; default is PAWL_DATA, or else a log is made up")
	c.Flags().Int64Var(&r.events, "events", 0, "how many events of it (default all)")
	c.Flags().StringVar(&r.via, "via", "both", "how they are submitted: http, go, or both: one caller of each")
	return c
}

func (r *replaying) run(ctx context.Context, c *cobra.Command, url string) (err error) {
	log, err := replay.Find(r.data, r.events)
	if err != nil {
		return err
	}
	config := pawl.ConfigOf(c, fines.Workflow)
	config.Database, config.Address = url, "127.0.0.1:0"
	config.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	service, err := pawl.Start(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		err = errors.Join(err, service.Stop(stopping))
	}()
	var targets []replay.Target
	if r.via != "go" {
		targets = append(targets, replay.HTTP(service.URL(), nil))
	}
	if r.via != "http" {
		targets = append(targets, service.Engine())
	}
	report, err := replay.Play(ctx, replay.Options{
		Log: log, Targets: targets, Engine: service.Engine(), Pool: service.Pool(),
		Schema: config.Schema, Tenant: r.tenant, Progress: c.ErrOrStderr(),
	})
	if report != nil {
		_, printErr := fmt.Fprint(c.OutOrStdout(), report)
		err = errors.Join(err, printErr)
	}
	return err
}
