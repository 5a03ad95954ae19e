package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) retentionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "retention",
		Short: "See who removes what has expired, and what is kept for whom",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				r, err := e.Retention(ctx)
				if err != nil {
					return err
				}
				return o.print(c, r, func(w io.Writer) error { return printRetention(w, &r) })
			})
		},
	}
}

func printRetention(w io.Writer, r *transitions.Retention) error {
	_, err := fmt.Fprintf(w, "node   %s\nsince  %s\nuntil  %s, unless it goes on\nnext   %s\n\n", orNone(r.Node), maybe(r.Since), maybe(r.Until), maybe(r.Next))
	if err != nil {
		return err
	}
	header := []string{"partition", "from", "to", ">rows", ">MiB", "state"}
	return printTable(w, header, r.Partitions, func(p *transitions.Partition) []string {
		state := "in use"
		switch {
		case p.Detached:
			state = "being dropped"
		case p.Over && p.Held != "":
			state = "kept: " + orNone(p.Held)
		case p.Over:
			state = "to be dropped"
		}
		return []string{p.Name, moment(p.From), moment(p.To), fmt.Sprintf("~%d", p.Rows), fmt.Sprintf("%.1f", float64(p.Bytes)/(1<<20)), state}
	})
}
