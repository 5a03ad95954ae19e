package ops

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

func (o *ops) retentionCommand() *cobra.Command {
	var keepEvents time.Duration
	c := &cobra.Command{
		Use:   "retention",
		Short: "See who removes what has expired, and what is kept for whom",
		Long: `See who removes what has expired, and what is kept for whom.

How long events are kept is configured for each node, and not written down in the
database: where it is not the default, say it here as well.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			assumed := !c.Flags().Changed("keep-events")
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				r, err := e.Admin().Retention(ctx)
				if err != nil {
					return err
				}
				return o.print(c, r, func(w io.Writer) error { return printRetention(w, &r, assumed) })
			}, func(config *engine.Config) { config.Retention.Outbox = keepEvents })
		},
	}
	flags.KeepEvents(c, &keepEvents, "for how long the nodes keep events, as serve was told")
	return c
}

func printRetention(w io.Writer, r *inspect.Retention, assumed bool) error {
	until, next, guess := output.Maybe(r.Until), output.Maybe(r.Next), ""
	if r.Next != nil {
		next += ", when a key is due"
	}
	if r.Until != nil {
		until += ", unless it goes on"
	}
	if assumed {
		guess = ", it is assumed; --keep-events where the nodes have another"
	}
	lines := [][2]string{{"node", output.OrNone(r.Node)}, {"since", output.Maybe(r.Since)}, {"until", until}, {"next", next},
		{"keeps", fmt.Sprintf("events for %s%s", time.Duration(r.KeepEvents)*time.Second, guess)}, {}}
	if err := output.Lines(w, 7, lines); err != nil {
		return err
	}
	header := []string{"partition", "from", "to", ">rows", ">MiB", "state"}
	return output.Table(w, header, r.Partitions, func(p *inspect.Partition) []string {
		state := "in use"
		switch {
		case p.Detached:
			state = "being dropped"
		case p.Over && p.Held != "":
			state = "kept: " + output.OrNone(p.Held)
		case p.Over:
			state = "to be dropped"
		}
		return []string{p.Name, output.Moment(p.From), output.Moment(p.To), fmt.Sprintf("~%d", p.Rows),
			fmt.Sprintf("%.1f", float64(p.Bytes)/(1<<20)), state}
	})
}
