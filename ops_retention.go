package pawl

import (
	"context"
	"fmt"
	"io"
	"time"

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
				if o.json {
					return printJSON(c.OutOrStdout(), r)
				}
				return printRetention(c.OutOrStdout(), &r)
			})
		},
	}
}

func printRetention(w io.Writer, r *transitions.Retention) error {
	_, err := fmt.Fprintf(w, "node   %s\nsince  %s\nuntil  %s, unless it goes on\nnext   %s\n\n", orNone(r.Node), maybe(r.Since), maybe(r.Until), maybe(r.Next))
	if err != nil {
		return err
	}
	var rows [][]string
	for _, p := range r.Partitions {
		state := "in use"
		switch {
		case p.Detached:
			state = "being dropped"
		case p.Over && p.Held != "":
			state = "kept: " + orNone(p.Held)
		case p.Over:
			state = "to be dropped"
		}
		rows = append(rows, []string{p.Name, moment(p.From), moment(p.To), fmt.Sprintf("~%d", p.Rows), fmt.Sprintf("%.1f", float64(p.Bytes)/(1<<20)), state})
	}
	return printTable(w, []string{"partition", "from", "to", ">rows", ">MiB", "state"}, rows)
}

// maybe is a time that there may not be, as a table shows it.
func maybe(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return moment(*t)
}
