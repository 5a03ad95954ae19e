package remote

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/client"
)

func getCommand(a asking) *cobra.Command {
	c := &cobra.Command{
		Use:   "get INSTANCE",
		Short: "Show an instance",
		Long:  "Show an instance with its timers, scheduled commands and stuck commands.\n\n" + instanceUsage,
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
				return output.Print(c, a.json, &v, func(w io.Writer) error { return printView(w, &v) })
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

// idOf formats an id; "-" if it is uuid.Nil.
func idOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return "-"
	}
	return id.String()
}

func listCommand(a asking) *cobra.Command {
	var f client.InstanceFilter
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List instances",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.States, f.Open = flags.StatesOf(c)
			f.Workflow = c.Flag("workflow").Value.String()
			f.Definition, _ = c.Flags().GetInt("definition")
			f.Attributes, _ = c.Flags().GetStringToString("attr")
			a.workflow = f.Workflow
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				header := []string{"id", "workflow", "business key", "state", ">version", "updated"}
				found, err := list(&a, c, asked.Instances(ctx, f), limit, header, func(i *client.Instance) []string {
					return []string{i.ID.String(), i.Workflow, output.OrNone(i.BusinessKey), string(i.State), fmt.Sprint(i.Version),
						output.Moment(i.UpdatedAt)}
				}, func(found []client.Instance, _ bool) (any, error) { return wire.InstancePage{Instances: found}, nil })
				if err == nil && found == 0 {
					a.warnOfStates(ctx, c, asked, f.States)
				}
				return err
			})
		},
	}
	a.flags(c)
	flags.Selection(c)
	c.Flag("attr").Usage += ". NAME.from=VALUE, NAME.before=VALUE and NAME.prefix=VALUE select a range of values, compared as text"
	c.Flags().StringVar(&f.BusinessKey, "business-key", "", "only this business key; needs --workflow")
	c.Flags().BoolVar(&f.NewestUpdateFirst, "newest", false, "last updated first")
	flags.Limit(c, &limit)
	flags.Before(c, func() error { return flags.NotEmpty(c, "business-key") })
	return c
}

func historyCommand(a asking) *cobra.Command {
	var after int64
	var limit int
	c := &cobra.Command{
		Use:   "history INSTANCE",
		Short: "List the transitions of an instance, oldest first",
		Long: `List the transitions of an instance, oldest first. The reason includes the time of
imported events and the versions of a migration. With -o json each transition has its
payload and the data after it.

` + instanceUsage,
		Args: flags.Operands("INSTANCE"),
		RunE: func(c *cobra.Command, args []string) error {
			of, err := a.instance(args[0])
			if err != nil {
				return err
			}
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				header := []string{">version", "at", "transition", "from", "to", "actor", "key", "reason"}
				_, err := list(&a, c, asked.History(ctx, of, after), limit, header, func(e *client.Entry) []string {
					return []string{fmt.Sprint(e.Version), output.Moment(e.At), e.Transition, output.OrNone(string(e.From)), string(e.To),
						e.Actor, e.Key, output.Why(e.Transition, e.Cause, e.CausedBy, e.Payload, e.Reason)}
				}, func(found []client.Entry, more bool) (any, error) {
					id, err := idOfTarget(ctx, asked, of, args[0])
					page := wire.History{Instance: id, Entries: found}
					if more {
						page.NextAfter = found[len(found)-1].Version
					}
					return page, err
				})
				return err
			})
		},
	}
	a.flags(c)
	c.Flags().Int64Var(&after, "after", 0, "only transitions after this version")
	flags.Limit(c, &limit)
	flags.Before(c, func() error {
		if after < 0 {
			return usage.Errorf("--after %d is negative", after)
		}
		return nil
	})
	return c
}

func childrenCommand(a asking) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "children INSTANCE",
		Short: "List the child instances of an instance",
		Long: `List the child instances of an instance in the order of their start. "end" is the
transition that the completion of a child submits. "problem" is "stuck" if a command of
the child waits for an operator, and "deferred" if its completion waits for another state
of the parent.

` + instanceUsage,
		Args: flags.Operands("INSTANCE"),
		RunE: func(c *cobra.Command, args []string) error {
			of, err := a.instance(args[0])
			if err != nil {
				return err
			}
			f := client.ChildFilter{Stuck: flags.OptionalBool(c, "stuck")}
			f.States, f.Open = flags.StatesOf(c)
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				header := []string{"id", "workflow", "state", ">version", "updated", "end", "problem"}
				_, err := list(&a, c, asked.Children(ctx, of, f), limit, header, func(i *client.Child) []string {
					return []string{i.ID.String(), i.Workflow, string(i.State), fmt.Sprint(i.Version), output.Moment(i.UpdatedAt), output.OrNone(i.End),
						output.OrNone(problemOf(i))}
				}, func(found []client.Child, _ bool) (any, error) {
					id, err := idOfTarget(ctx, asked, of, args[0])
					return wire.ChildPage{Instance: id, Children: found}, err
				})
				return err
			})
		},
	}
	a.flags(c)
	flags.States(c)
	c.Flags().Bool("stuck", false, "only children with a command that waits for an operator; with --stuck=false only the others")
	flags.Limit(c, &limit)
	return c
}

// problemOf names what is wrong with a child; "" if nothing is.
func problemOf(c *client.Child) string {
	switch {
	case c.Stuck:
		return "stuck"
	case c.Deferred:
		return "deferred"
	}
	return ""
}

func canCommand(a asking) *cobra.Command {
	c := &cobra.Command{
		Use:   "can INSTANCE [TRANSITION]",
		Short: "Show the transitions that are possible now",
		Long: `Show which transitions of an instance are possible now, and why the others are not. With
a TRANSITION, the exit code is 1 if it is not possible.

` + instanceUsage,
		Args: flags.Operands("INSTANCE", "[TRANSITION]"),
		RunE: func(c *cobra.Command, args []string) error {
			of, err := a.instance(args[0])
			if err != nil {
				return err
			}
			return a.ask(c, attempts, func(ctx context.Context, asked *client.Client) error {
				options, err := asked.Options(ctx, of)
				switch {
				case err != nil:
					return err
				case len(args) > 1:
					return a.can(c, &options, args[1])
				}
				return output.Print(c, a.json, &options, func(w io.Writer) error { return printOptions(w, &options) })
			})
		},
	}
	a.flags(c)
	return c
}

func printOptions(w io.Writer, o *client.Options) error {
	header := []string{"transition", "now", "to", "why not"}
	err := output.Table(w, header, o.Transitions, func(t *wire.Option) []string {
		return []string{t.Transition, yesNo(t.Allowed), join(t.To), output.OrNone(whyNot(t))}
	})
	if err != nil {
		return err
	}
	return printStuck(w, false, o.Stuck)
}

// can prints one transition. It returns an error if that is not possible now.
func (a *asking) can(c *cobra.Command, o *client.Options, transition string) error {
	i := slices.IndexFunc(o.Transitions, func(t wire.Option) bool { return t.Transition == transition })
	if i < 0 {
		var names []string
		for _, t := range o.Transitions {
			names = append(names, t.Transition)
		}
		return usage.Errorf("unknown transition %q; %s", transition, flags.Nearest(transition, names))
	}
	t := &o.Transitions[i]
	one := *o
	one.Transitions = o.Transitions[i : i+1]
	err := output.Print(c, a.json, &one, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s, %s\n", yesNo(t.Allowed), output.Visible(t.Transition+" to "+join(t.To)))
		return err
	})
	if err == nil && !t.Allowed {
		err = fmt.Errorf("not %s: %s", t.Transition, output.Visible(whyNot(t)))
	}
	return err
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func join[S ~string](list []S) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, " or ")
}

func whyNot(t *wire.Option) string {
	var reasons []string
	for _, r := range t.Reasons {
		reasons = append(reasons, fmt.Sprintf("%s: %s", r.Code, r.Message))
	}
	return strings.Join(reasons, "; ")
}
