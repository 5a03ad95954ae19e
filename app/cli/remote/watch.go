package remote

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/client"
)

func watchCommand(a asking) *cobra.Command {
	c := &cobra.Command{
		Use:   "watch SCOPE KEY",
		Short: "Follow a command until it has ended",
		Long: `Follow a command until it has ended: how it stands, now and whenever that changes, and
its answer. SCOPE and KEY are what submit tells of a command that takes time. With
-o json each line is JSON.`,
		Args: flags.Operands("SCOPE", "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.ask(c, 0, func(ctx context.Context, asked *client.Client) error {
				for s, err := range asked.Watch(ctx, args[0], args[1]) {
					if err != nil {
						return err
					}
					if err := a.standing(c, &s); err != nil {
						return err
					}
				}
				return a.end(ctx, c, asked, args[0], args[1])
			})
		},
	}
	a.flags(c)
	return c
}

// standing prints how a command stands.
func (a *asking) standing(c *cobra.Command, s *client.CommandStatus) error {
	if a.json {
		return output.Line(c.OutOrStdout(), s)
	}
	line := fmt.Sprintf("%s  %s", output.Moment(s.UpdatedAt), s.Status)
	if s.Attempt > 0 {
		line += fmt.Sprintf(", attempt %d", s.Attempt)
	}
	for _, more := range []struct{ name, text string }{{"failure", s.Failure}, {"progress", string(s.Progress)},
		{"cancelled by", s.CancelledBy}, {"stuck", s.Stuck}} {
		if more.text != "" {
			line += fmt.Sprintf(", %s %s", more.name, output.OrNone(more.text))
		}
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), output.Visible(line))
	return err
}

// end prints the answer of a command that has ended.
func (a *asking) end(ctx context.Context, c *cobra.Command, asked *client.Client, scope, key string) error {
	r, err := asked.Wait(ctx, scope, key)
	if err != nil || a.json {
		return err
	}
	r.Replayed = false
	return printReceipt(c.OutOrStdout(), &r)
}
