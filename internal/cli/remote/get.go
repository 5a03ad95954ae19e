package remote

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/internal/cli/output"
)

func getCommand(server string) *cobra.Command {
	var a asking
	c := &cobra.Command{
		Use:   "get INSTANCE",
		Short: "Show an instance, and what waits on it",
		Long:  "Show an instance, and what waits on it.\n\n" + instanceUsage,
		Args:  flags.Operands("INSTANCE"),
		RunE: func(c *cobra.Command, args []string) error {
			of, err := instanceOf(args[0])
			if err != nil {
				return err
			}
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				v, err := asked.Instance(ctx, of)
				if err != nil {
					return err
				}
				return a.show(c, &v, func(w io.Writer) error { return printInstance(w, &v) })
			})
		},
	}
	a.flags(c, server)
	return c
}

func printInstance(w io.Writer, v *client.InstanceView) error {
	stands := "open"
	if !v.Open {
		stands = "closed"
	}
	if v.Paused {
		stands += ", paused"
	}
	lines := [][2]string{
		{"instance", v.ID.String()}, {"workflow", fmt.Sprintf("%s, version %d", v.Workflow, v.Definition)},
		{"business key", output.OrNone(v.BusinessKey)}, {"state", fmt.Sprintf("%s (%s), version %d", v.State, stands, v.Version)},
		{"created", output.Moment(v.CreatedAt)}, {"updated", output.Moment(v.UpdatedAt)},
	}
	if f := v.InFlight; f != nil {
		lines = append(lines, [2]string{"in flight", fmt.Sprintf("%s, scope %s, key %s", f.Transition, f.Scope, f.Key)})
	}
	for _, name := range slices.Sorted(maps.Keys(v.Attributes)) {
		lines = append(lines, [2]string{name, output.OrNone(v.Attributes[name])})
	}
	lines = append(lines, [2]string{"data", output.OrNone(string(v.Data))})
	if err := output.Lines(w, 14, lines); err != nil {
		return err
	}
	return printWaiting(w, v)
}

// printWaiting prints what waits on an instance.
func printWaiting(w io.Writer, v *client.InstanceView) error {
	more := func(name string) bool { return slices.Contains(v.More, name) }
	if err := printStuck(w, more("stuck"), v.Stuck); err != nil {
		return err
	}
	err := output.Part(w, "timers", more("timers"), []string{"due", "timer", "transition"}, v.Timers, func(t *wire.Timer) []string {
		return []string{output.Moment(t.Due), t.Name, t.Transition}
	})
	if err != nil {
		return err
	}
	return output.Part(w, "scheduled", more("scheduled"), []string{"due", "transition", "scope", "key", "actor"}, v.Scheduled,
		func(s *wire.ScheduledCommand) []string {
			return []string{output.Moment(s.Due), s.Transition, s.Scope, s.Key, s.Actor}
		})
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
