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

// tailing is what the flags of tail say, and how far it has come.
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
		Short: "Follow the log: a line for each event",
		Long: `Follow the log, one line for each event, until it is interrupted. On a terminal each workflow has
its colour (NO_COLOR: none). With -o json each line is a CloudEvent.

After an outage it reconnects. At its end it prints the position to resume at with --after; with
-o json every event has it as the attribute cursor. The exit code is 0 after an interrupt or --count
events, 5 if the server refuses, for example because events were removed, and 6 if no server
answers at the start.`,
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
			t.workflow, t.config.Notify = t.filter.Workflow, tellOfOutages(c)
			return t.ask(c, attempts, func(ctx context.Context, asked *client.Client) error { return t.tail(ctx, c, asked, after) })
		},
	}
	t.flags(c)
	own := c.Flags()
	own.StringVar(&t.after, "after", "now", "where to begin: start, now, or after this position")
	own.IntVarP(&t.count, "count", "n", 0, "end after so many events; 0 is never")
	own.StringVar(&t.filter.Workflow, "workflow", "", "only events of this workflow")
	own.String("instance", "", "only those of the instance with this id")
	own.StringVar(&t.filter.BusinessKey, "business-key", "", "only those of the instance with this business key, with --workflow")
	own.StringToStringVar(&t.filter.Attributes, "attr", nil, "only those of instances with this attribute, as NAME=VALUE")
	own.StringSliceVar(&t.filter.Types, "type", nil, "only events of these types")
	own.StringArrayVar(&t.states, "state", nil, "only those that lead to this state; may be given several times")
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

// positionOf reads where to begin.
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

// tellOfOutages reports that no server answers, once for each outage, and its end.
func tellOfOutages(c *cobra.Command) func(error, time.Duration) {
	outage := false
	return func(err error, _ time.Duration) {
		switch {
		case err == nil:
			c.PrintErrln("connected again")
		case !outage:
			c.PrintErrln(output.Visible(err.Error() + "; trying again"))
		}
		outage = err != nil
	}
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

// line is an event as a line of text.
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

// paint gives a text the colour of its workflow, one of six.
func (t *tailing) paint(workflow, text string) string {
	if !t.color {
		return text
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(workflow))
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", 31+h.Sum32()%6, text)
}
