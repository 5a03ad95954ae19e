package ops

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
)

// deadFlags are the flags that select dead letters.
type deadFlags struct {
	filter inspect.DeadFilter
}

func (d *deadFlags) flags(c *cobra.Command) {
	c.Flags().StringVar((*string)(&d.filter.Status), "status", string(inspect.DeadWaiting),
		"waiting (for an operator), queued, redriven or skipped")
	flags.Tenant(c, &d.filter.Tenant, "", "whose events; default is everybody's")
	caseFlags(c, &d.filter.Workflow, &d.filter.BusinessKey, &d.filter.Instance, "only events of")
	c.Flags().StringVar(&d.filter.Type, "type", "", "only events of this type")
	c.Flags().Int64Var(&d.filter.Position, "position", 0, "only the events of this position of the tenant's log")
	flags.Before(c, func() error { return flags.NotEmpty(c, "type") })
	flags.Before(c, d.check)
}

func (d *deadFlags) check() error {
	if d.filter.BusinessKey != "" && d.filter.Tenant == "" {
		return usage.Errorf("--business-key needs --tenant, whose it is")
	}
	if d.filter.Position != 0 && d.filter.Tenant == "" {
		return usage.Errorf("--position needs --tenant, whose log it is of")
	}
	return nil
}

// narrow reports whether they select less than all that wait.
func (d *deadFlags) narrow() bool {
	f := d.filter
	return f.Tenant != "" || f.Workflow != "" || f.Type != "" || f.Instance != uuid.Nil || f.Position != 0
}

func (o *ops) deadCommand() *cobra.Command {
	var d deadFlags
	var limit int
	c := &cobra.Command{
		Use:   "dead SINK",
		Short: "List the events that a sink has not got",
		Args:  flags.Operands("SINK"),
		RunE: func(c *cobra.Command, args []string) error {
			d.filter.Sink = args[0]
			header := []string{"since", "tenant", ">position", "type", "business key", "instance", "status", "kind", ">attempts", "failure"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) ([]inspect.DeadLetter, bool, error) {
				found, more, err := e.Admin().DeadLetters(ctx, d.filter, inspect.DeadPage{Limit: limit})
				return found, more, err
			}, func(l *inspect.DeadLetter) []string {
				return []string{output.Moment(l.Created), l.Tenant, fmt.Sprint(l.Position), l.Type, output.OrNone(l.BusinessKey), l.Instance.String(),
					string(l.Status), l.Kind, fmt.Sprint(l.Attempts), output.OrNone(l.Failure)}
			}, func(list []inspect.DeadLetter) any { return api.DeadPage{Dead: list} })
		},
	}
	d.flags(c)
	flags.Limit(c, &limit)
	return c
}

func (o *ops) redriveCommand() *cobra.Command {
	return o.turnCommand(&cobra.Command{
		Use:   "redrive SINK",
		Short: "Let dead letters be delivered again",
		Long: `Let dead letters be delivered again, with the ids that they have, in the order of
the log for each instance: those that the flags select, or --all that wait.`,
	}, "redriven", (*engine.Admin).Redrive)
}

func (o *ops) skipCommand() *cobra.Command {
	return o.turnCommand(&cobra.Command{
		Use:   "skip SINK",
		Short: "Say of dead letters that they are never to be delivered",
		Long: `Say of dead letters that they are never to be delivered: of those that the flags
select, or of --all that wait; it needs a --reason. What comes after them of their
instances goes on.`,
	}, "skipped", (*engine.Admin).SkipDead)
}

// turnCommand is a command that changes what becomes of dead letters.
func (o *ops) turnCommand(c *cobra.Command, done string,
	turn func(e *engine.Admin, ctx context.Context, f inspect.DeadFilter, by, reason string) (int64, error)) *cobra.Command {
	var d deadFlags
	var a author
	var all bool
	c.Args = flags.Operands("SINK")
	c.RunE = func(c *cobra.Command, args []string) error {
		d.filter.Sink = args[0]
		if !all && !d.narrow() {
			return usage.Errorf("say which: with --tenant, --workflow, --type, --business-key, --instance or --position, or --all")
		}
		return o.run(c, func(ctx context.Context, e *engine.Engine) error {
			n, err := turn(e.Admin(), ctx, d.filter, a.by, a.reason)
			if err != nil {
				return err
			}
			letters := "dead letters"
			if n == 1 {
				letters = "dead letter"
			}
			return o.say(c, api.DeadChange{Changed: n}, "%s: %d %s %s", args[0], n, letters, done)
		})
	}
	d.flags(c)
	a.flags(c)
	c.Flags().BoolVar(&all, "all", false, "all of this status")
	return c
}
