package remote

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/client"
)

func canCommand(a asking) *cobra.Command {
	c := &cobra.Command{
		Use:   "can INSTANCE [TRANSITION]",
		Short: "Say what you can do with an instance now, and why not the rest",
		Long: `Say what you can do with an instance now, and why not the rest. With a transition the
exit code is 1 where that cannot be done.

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
				return a.show(c, &options, func(w io.Writer) error { return printOptions(w, &options) })
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

// can says whether one transition can be done now. Error: it cannot.
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
	err := a.show(c, &one, func(w io.Writer) error {
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
