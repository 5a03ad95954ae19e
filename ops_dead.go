package pawl

import (
	"context"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
)

// deadFlags are the flags that select dead letters.
type deadFlags struct {
	filter   transitions.DeadFilter
	status   string
	instance string
}

func (d *deadFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&d.status, "status", string(transitions.DeadWaiting), "waiting (for a person), queued, redriven or skipped")
	c.Flags().StringVar(&d.filter.Tenant, "tenant", "", "whose events; default is everybody's")
	c.Flags().StringVar(&d.filter.Workflow, "workflow", "", "only events of this workflow")
	c.Flags().StringVar(&d.filter.Type, "type", "", "only events of this type")
	c.Flags().StringVar(&d.instance, "instance", "", "only events of the instance with this id")
	c.Flags().Int64Var(&d.filter.Position, "position", 0, "only the events of this position of the tenant's log")
}

// of is the filter that the flags ask for.
func (d *deadFlags) of(sink string) (transitions.DeadFilter, error) {
	f := d.filter
	f.Sink, f.Status = sink, transitions.DeadStatus(d.status)
	if err := checkTenant(f.Tenant); err != nil {
		return f, err
	}
	if d.instance != "" {
		var err error
		if f.Instance, err = uuid.Parse(d.instance); err != nil {
			return f, usagef("--instance is not a UUID: %w", err)
		}
	}
	if f.Position != 0 && f.Tenant == "" {
		return f, usagef("--position needs --tenant, whose log it is of")
	}
	return f, nil
}

// narrow reports whether they select less than all that wait.
func (d *deadFlags) narrow() bool {
	f := d.filter
	return f.Tenant != "" || f.Workflow != "" || f.Type != "" || d.instance != "" || f.Position != 0
}

func (o *ops) deadCommand() *cobra.Command {
	var d deadFlags
	var limit int
	c := &cobra.Command{
		Use:   "dead SINK",
		Short: "List the events that a sink has not got",
		Args:  operands("SINK"),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := d.of(args[0])
			if err != nil {
				return err
			}
			if err := checkLimit(limit); err != nil {
				return err
			}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				list, more, err := e.DeadLetters(ctx, f, transitions.DeadPage{Limit: limit})
				if err != nil {
					return err
				}
				if o.json {
					return printJSON(c.OutOrStdout(), append([]transitions.DeadLetter{}, list...))
				}
				if err := printDead(c.OutOrStdout(), list); err != nil {
					return err
				}
				return sayMore(c, more)
			})
		},
	}
	d.flags(c)
	limitFlag(c, &limit)
	return c
}

func printDead(w io.Writer, list []transitions.DeadLetter) error {
	var rows [][]string
	for _, l := range list {
		rows = append(rows, []string{moment(l.Created), l.Tenant, fmt.Sprint(l.Position), l.Type, l.Instance.String(), string(l.Status), l.Kind,
			fmt.Sprint(l.Attempts), orNone(l.Failure)})
	}
	return printTable(w, []string{"since", "tenant", ">position", "type", "instance", "status", "kind", ">attempts", "failure"}, rows)
}

func (o *ops) redriveCommand() *cobra.Command {
	return o.turnCommand(&cobra.Command{
		Use:   "redrive SINK",
		Short: "Let dead letters be delivered again",
		Long: `Let dead letters be delivered again, with the ids that they have, in the order of
the log for each instance: those that the flags select, or --all that wait.`,
	}, "redriven", (*engine.Engine).Redrive)
}

func (o *ops) skipCommand() *cobra.Command {
	return o.turnCommand(&cobra.Command{
		Use:   "skip SINK",
		Short: "Say of dead letters that they are never to be delivered",
		Long: `Say of dead letters that they are never to be delivered: of those that the flags
select, or of --all that wait; it needs a --reason. What comes after them of their
instances goes on.`,
	}, "skipped", (*engine.Engine).SkipDead)
}

// turnCommand is a command that changes what becomes of dead letters.
func (o *ops) turnCommand(c *cobra.Command, done string,
	turn func(e *engine.Engine, ctx context.Context, f transitions.DeadFilter, by, reason string) (int64, error)) *cobra.Command {
	var d deadFlags
	var a author
	var all bool
	c.Args = operands("SINK")
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := d.of(args[0])
		if err != nil {
			return err
		}
		if !all && !d.narrow() {
			return usagef("say which: with --tenant, --workflow, --type, --instance or --position, or --all")
		}
		return o.run(c, func(ctx context.Context, e *engine.Engine) error {
			n, err := turn(e, ctx, f, a.by, a.reason)
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(c.OutOrStdout(), sinkChange{Sink: f.Sink, Done: done, Count: n})
			}
			letters := "dead letters"
			if n == 1 {
				letters = "dead letter"
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d %s %s\n", f.Sink, n, letters, done)
			return err
		})
	}
	d.flags(c)
	a.flags(c)
	c.Flags().BoolVar(&all, "all", false, "all of this status")
	return c
}
