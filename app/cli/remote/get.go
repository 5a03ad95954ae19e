package remote

import (
	"context"
	"io"
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/client"
)

func getCommand(a asking) *cobra.Command {
	c := &cobra.Command{
		Use:   "get INSTANCE",
		Short: "Show an instance, and what waits on it",
		Long:  "Show an instance, and what waits on it.\n\n" + instanceUsage,
		Args:  flags.Operands("INSTANCE"),
		RunE: func(c *cobra.Command, args []string) error {
			of, err := a.instance(args[0])
			if err != nil {
				return err
			}
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				v, err := asked.Instance(ctx, of)
				if err != nil {
					return err
				}
				return a.show(c, &v, func(w io.Writer) error { return printView(w, &v) })
			})
		},
	}
	a.flags(c)
	return c
}

func printView(w io.Writer, v *client.InstanceView) error {
	if err := output.Instance(w, v); err != nil {
		return err
	}
	if err := printStuck(w, slices.Contains(v.More, "stuck"), v.Stuck); err != nil {
		return err
	}
	return output.Timers(w, v)
}

func printStuck(w io.Writer, more bool, stuck []wire.StuckCommand) error {
	header := []string{"since", "transition", "scope", "key", "why"}
	return output.Part(w, "stuck: an operator has to retry, resolve or abandon", more, header, stuck, func(s *wire.StuckCommand) []string {
		return []string{output.Moment(s.Since), s.Transition, s.Scope, s.Key, output.OrNone(s.Message)}
	})
}

// idOf is an id as a table shows it.
func idOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return "-"
	}
	return id.String()
}
