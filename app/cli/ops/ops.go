// Package ops has the commands for operators, which show the state of a database and act on stuck work. They are subcommands of one command
// of package cli.
package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// Run does something with an engine on a command's database that is not started,
// and that is configured as the command wants.
type Run func(c *cobra.Command, do func(ctx context.Context, e *engine.Engine) error, change ...func(*engine.Config)) error

// Command is the command ops.
func Command(run Run) *cobra.Command {
	o := &ops{run: run}
	c := flags.Group("ops", "See how everything stands, and see to what does not go on by itself",
		o.countsCommand(), o.keysCommand(), o.showCommand(), o.commandsCommand(), o.stuckCommand(),
		o.settleCommand(transitions.Retry, "Have a stuck command done once more, with all its attempts"),
		o.settleCommand(transitions.Resolve, "Say of a stuck command that it has happened, with its result"),
		o.settleCommand(transitions.Abandon, "Give a stuck command up"),
		o.pauseCommand(), o.resumeCommand(), o.pausedCommand(), o.versionsCommand(), o.beginCommand(),
		o.migrateCommand(), o.migrationsCommand(), o.stopMigrationCommand(), o.correctCommand(),
		o.sinksCommand(), o.inboxCommand(), o.retentionCommand(), o.nodesCommand())
	c.Long = `See how everything stands, and see to what does not go on by itself.

These commands work on the database, whether or not a node serves. What they
change, the nodes notice within seconds. Times are UTC.`
	flags.Output(c, &o.json)
	return c
}

// ops are the commands for operators.
type ops struct {
	run  Run
	json bool
}

// print shows a value: as JSON, with the names that REST has for it, or as the
// text that it is to people.
func (o *ops) print(c *cobra.Command, v any, text func(w io.Writer) error) error {
	if o.json {
		return output.JSON(c.OutOrStdout(), v)
	}
	return text(c.OutOrStdout())
}

// say shows what was done: as JSON, or in a line.
func (o *ops) say(c *cobra.Command, v any, format string, args ...any) error {
	return o.print(c, v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		return err
	})
}

// list prints the found entries as a table, with a row for each, and warns if there are more. In JSON they are the page that HTTP answers
// with, as page makes it.
func list[T any](o *ops, c *cobra.Command, header []string,
	find func(ctx context.Context, e *engine.Engine) (found []T, more bool, err error),
	row func(*T) []string, page func([]T) any) error {
	return o.run(c, func(ctx context.Context, e *engine.Engine) error {
		found, more, err := find(ctx, e)
		if err != nil {
			return err
		}
		return show(o, c, header, found, more, row, page)
	})
}

// show prints entries like list.
func show[T any](o *ops, c *cobra.Command, header []string, found []T, more bool, row func(*T) []string, page func([]T) any) error {
	if found == nil {
		found = []T{} // in JSON a list too
	}
	err := o.print(c, page(found), func(w io.Writer) error { return output.Table(w, header, found, row) })
	if err != nil {
		return err
	}
	return output.More(c, more)
}

// change changes something, and says what is done: as JSON, or in a line.
func (o *ops) change(c *cobra.Command, done any, line string, do func(ctx context.Context, e *engine.Engine) error) error {
	return o.run(c, func(ctx context.Context, e *engine.Engine) error {
		if err := do(ctx, e); err != nil {
			return err
		}
		return o.say(c, done, "%s", line)
	})
}
