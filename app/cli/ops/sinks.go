package ops

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) sinksCommand() *cobra.Command {
	return flags.Group("sinks", "See how the sinks stand, and see to them and to their dead letters",
		o.sinksListCommand(), o.sinkShowCommand(), o.sinkPauseCommand(), o.sinkResumeCommand(), o.sinkForgetCommand(), o.sinkMoveCommand(),
		o.deadCommand(), o.redriveCommand(), o.skipCommand())
}

func (o *ops) sinksListCommand() *cobra.Command {
	var tenant string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the sinks: who delivers, how far behind, what failed",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var now time.Time
			header := []string{"sink", "state", ">lag", ">tenants", ">dead", ">aside", ">delivered", ">failed", ">parked", "age", "failure"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) ([]inspect.SinkInfo, bool, error) {
				found, err := e.Admin().Sinks(ctx, tenant)
				now = time.Now()
				return found, false, err
			}, func(i *inspect.SinkInfo) []string {
				row := []string{i.Name, stateOf(i, now)}
				for _, v := range []int64{i.Lag, i.Behind, i.DeadLetters, i.Aside, i.Delivered, i.Failed, i.Parked} {
					row = append(row, fmt.Sprint(v))
				}
				return append(row, output.Since(now, i.Oldest), output.OrNone(i.Failure))
			}, func(list []inspect.SinkInfo) any { return api.SinkList{Sinks: list} })
		},
	}
	flags.Tenant(c, &tenant, "", "count only the events of this tenant; default is everybody's")
	return c
}

func (o *ops) sinkShowCommand() *cobra.Command {
	var f inspect.CursorFilter
	c := &cobra.Command{
		Use:   "show SINK",
		Short: "Show how a sink stands, and how far it is in each tenant's log",
		Args:  flags.Operands("SINK"),
		RunE: func(c *cobra.Command, args []string) error {
			f.Sink = args[0]
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				list, more, err := e.Admin().SinkCursors(ctx, f)
				if err != nil {
					return err
				}
				infos, err := e.Admin().Sinks(ctx, f.Tenant)
				if err != nil {
					return err
				}
				shown := api.SinkPage{Cursors: list}
				for _, i := range infos {
					if i.Name == f.Sink {
						shown.Sink = i
					}
				}
				if err := o.print(c, shown, func(w io.Writer) error { return printSink(w, &shown, time.Now()) }); err != nil {
					return err
				}
				return output.More(c, more)
			})
		},
	}
	flags.Tenant(c, &f.Tenant, "", "only the log of this tenant; default is all")
	flags.Limit(c, &f.Limit)
	return c
}

// printSink shows a sink with its cursors.
func printSink(w io.Writer, s *api.SinkPage, now time.Time) error {
	i := &s.Sink
	lines := [][2]string{{"sink", i.Name}, {"state", stateOf(i, now)}, {"node", output.OrNone(i.Node)}, {"since", output.Moment(i.Since)}}
	if len(i.Tenants) > 0 {
		lines = append(lines, [2]string{"tenants", strings.Join(i.Tenants, ", ")})
	}
	if p := i.Paused; p != nil {
		lines = append(lines, [2]string{"paused", fmt.Sprintf("%s by %s: %s", output.Moment(p.At), p.By, output.OrNone(p.Reason))})
	}
	if i.Failure != "" {
		lines = append(lines, [2]string{"failure", fmt.Sprintf("%s %s", output.Moment(i.FailedAt), output.OrNone(i.Failure))})
	}
	if err := output.Lines(w, 10, append(lines, [2]string{})); err != nil {
		return err
	}
	header := []string{"tenant", ">position", ">head", ">lag", "age", "failure", "moved"}
	return output.Table(w, header, s.Cursors, func(c *inspect.SinkCursor) []string {
		moved := "-"
		if m := c.Moved; m != nil {
			moved = fmt.Sprintf("%s from %d by %s: %s", output.Moment(m.At), m.From, m.By, output.OrNone(m.Reason))
		}
		return []string{c.Tenant, fmt.Sprint(c.Position), fmt.Sprint(c.Head), fmt.Sprint(c.Lag), output.Since(now, c.Oldest),
			output.OrNone(c.Failure), moved}
	})
}

// stateOf is the state of a sink in a word.
func stateOf(i *inspect.SinkInfo, now time.Time) string {
	switch {
	case i.Paused != nil:
		return "paused"
	case i.Node == "":
		return "nobody delivers"
	case i.LeaseEnds.Before(now):
		return "its node is gone"
	case i.Stuck > 0:
		return "blocked"
	case i.Failures > 0:
		return "failing"
	}
	return "delivers"
}

func (o *ops) sinkPauseCommand() *cobra.Command {
	var a author
	c := o.sinkCommand("pause", "Let nothing more be delivered to a sink; what is under way ends", "paused",
		func(e *engine.Admin, ctx context.Context, sink string) error {
			return e.PauseSink(ctx, sink, a.by, a.reason)
		})
	a.flags(c)
	return c
}

func (o *ops) sinkResumeCommand() *cobra.Command {
	return o.sinkCommand("resume", "End the pause of a sink", "resumed", (*engine.Admin).ResumeSink)
}

func (o *ops) sinkForgetCommand() *cobra.Command {
	c := o.sinkCommand("forget", "Give a sink up that no node has any more", "forgotten", (*engine.Admin).ForgetSink)
	c.Long = `Give a sink up: its cursors and its dead letters are deleted, and retention
waits for it no longer. Take it out of the configuration of every node first: a
node that has it makes it known again, and it begins anew.`
	return c
}

// sinkCommand is a command that does something to a sink, and says so.
func (o *ops) sinkCommand(name, short, done string, do func(e *engine.Admin, ctx context.Context, sink string) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " SINK",
		Short: short,
		Args:  flags.Operands("SINK"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.change(c, sinkChange{Sink: args[0], Done: done}, args[0]+": "+done, func(ctx context.Context, e *engine.Engine) error {
				return do(e.Admin(), ctx, args[0])
			})
		},
	}
}

func (o *ops) sinkMoveCommand() *cobra.Command {
	var a author
	var tenant string
	var to int64
	c := &cobra.Command{
		Use:   "move SINK --to POSITION",
		Short: "Deliver again from a position on, or leave out what is before it",
		Long: `Put a sink's cursor in a tenant's log to a position: back, and everything after
it is delivered again; or forward, and what is in between never is, which needs
a reason. Position 0 is the beginning of the log.`,
		Args: flags.Operands("SINK"),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("to") {
				return usage.Errorf("--to is missing")
			}
			done := fmt.Sprintf("moved to %d in the log of %s", to, tenant)
			return o.change(c, sinkChange{Sink: args[0], Done: done}, args[0]+": "+done, func(ctx context.Context, e *engine.Engine) error {
				return e.Admin().MoveSink(ctx, args[0], tenant, to, a.by, a.reason)
			})
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose log")
	c.Flags().Int64Var(&to, "to", 0, "the position after which it goes on")
	a.flags(c)
	return c
}

// sinkChange is what was done to a sink.
type sinkChange struct {
	Sink string `json:"sink"`
	Done string `json:"done"`
}
