package remote

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/progress"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/workflow"
)

// tailing has the flags of tail.
type tailing struct {
	asking
	after  string
	filter client.Filter
	states []string
	count  int
	color  bool
}

func tailCommand(a asking) *cobra.Command {
	t := tailing{asking: a}
	c := &cobra.Command{
		Use:   "tail",
		Short: "Follow the event log",
		Long: `Follow the event log, with a line for each event, until the command is interrupted. On a
terminal each workflow has a color, unless NO_COLOR is set. With -o json each line is a
CloudEvent.

The command reconnects after an outage. At the end it prints the position to continue
from with --after; with -o json it is the attribute cursor of each event. The exit code is
0 after an interrupt or --count events, 5 if the request was refused, such as for expired
events, and 6 if no server answered at the start.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			after, err := positionOf(t.after)
			if err != nil {
				return err
			}
			for _, s := range t.states {
				t.filter.States = append(t.filter.States, workflow.State(s))
			}
			t.color = progress.Terminal(c.OutOrStdout()) && os.Getenv("NO_COLOR") == ""
			outage := false
			t.workflow, t.config.Notify = t.filter.Workflow, func(err error, _ time.Duration) {
				switch {
				case err == nil:
					c.PrintErrln("reconnected")
				case !outage:
					c.PrintErrln(output.Visible(err.Error() + "; retrying"))
				}
				outage = err != nil
			}
			return t.ask(c, attempts, func(ctx context.Context, asked *client.Client) error { return t.tail(ctx, c, asked, after) })
		},
	}
	t.flags(c)
	own := c.Flags()
	own.StringVar(&t.after, "after", "now", "start, now, or the position after which to start")
	own.IntVarP(&t.count, "count", "n", 0, "end after this number of events; 0 means never")
	own.StringVar(&t.filter.Workflow, "workflow", "", "only this workflow")
	own.String("instance", "", "only the instance with this id")
	own.StringVar(&t.filter.BusinessKey, "business-key", "", "only this business key; needs --workflow")
	own.StringToStringVar(&t.filter.Attributes, "attr", nil, "only instances with this attribute, as NAME=VALUE")
	own.StringSliceVar(&t.filter.Types, "type", nil, "only these event types")
	own.StringArrayVar(&t.states, "state", nil, "only transitions to this state; may be given several times")
	flags.Before(c, func() error {
		if t.count < 0 {
			return usage.Errorf("--count %d is negative", t.count)
		}
		id, err := flags.Instance(c)
		if err == nil && c.Flags().Changed("instance") {
			t.filter.Instance = id.String()
		}
		return errors.Join(err, flags.NotEmpty(c, "after", "workflow", "business-key"))
	})
	return c
}

// positionOf parses --after.
func positionOf(text string) (client.Position, error) {
	switch text {
	case "start":
		return client.Start, nil
	case "now":
		return client.Now, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, usage.Errorf("--after %s is not start, now or a position", text)
	}
	return client.Position(n), nil
}

// tail prints events, and at the end the position to continue from, unless it has not changed. An interrupt is a normal end.
func (t *tailing) tail(ctx context.Context, c *cobra.Command, asked *client.Client, after client.Position) (err error) {
	t.warnOfStates(ctx, c, asked, t.filter.States)
	cursor, printed := after, 0
	for e, failed := range asked.Subscribe(ctx, after, t.filter) {
		if failed != nil {
			cursor, err = e.Cursor, failed
			break
		}
		if cursor < 0 {
			cursor = client.Position(e.Position - 1)
		}
		if err = t.print(c, &e); err != nil {
			break
		}
		cursor = e.Cursor
		if printed++; printed == t.count {
			break
		}
	}
	if cursor >= 0 {
		c.PrintErrf("resume with --after %d\n", cursor)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (t *tailing) print(c *cobra.Command, e *client.Event) error {
	if t.json {
		return output.Line(c.OutOrStdout(), e)
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), t.line(e))
	return err
}

// line formats an event.
func (t *tailing) line(e *client.Event) string {
	what := fmt.Sprintf("%s: %s -> %s", e.Transition, output.OrNone(string(e.From)), e.State)
	if e.Type != e.Workflow+"."+e.Transition {
		what = e.Type
	}
	of := output.Visible(e.Workflow + "#" + e.Subject)
	if e.BusinessKey == "" {
		of = output.Visible(e.Workflow + " " + e.Instance.String())
	}
	return fmt.Sprintf("%d  %s  %s  %s", e.Position, output.Moment(e.Time), t.paint(e.Workflow, of), output.Visible(what+by(e.Actor)))
}

func by(actor string) string {
	if actor == "" {
		return ""
	}
	return ", by " + output.OrNone(actor)
}

// paint colors a text by its workflow.
func (t *tailing) paint(workflow, text string) string {
	if !t.color {
		return text
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(workflow))
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", 31+h.Sum32()%6, text)
}

func watchCommand(a asking) *cobra.Command {
	c := &cobra.Command{
		Use:   "watch SCOPE KEY",
		Short: "Follow a command until it ends",
		Long: `Follow a command until it ends: print its status now and after each change, and then its
result. submit prints SCOPE and KEY of a command with an activity. With -o json each line
is JSON.`,
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
				// Print the answer of a command that has ended.
				r, err := asked.Wait(ctx, args[0], args[1])
				if err != nil || a.json {
					return err
				}
				r.Replayed = false
				return printReceipt(c.OutOrStdout(), &r)
			})
		},
	}
	a.flags(c)
	return c
}

// standing prints the status of a command.
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
