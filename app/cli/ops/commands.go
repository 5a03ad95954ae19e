package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) commandsCommand() *cobra.Command {
	var f inspect.CommandFilter
	var status string
	var kinds []string
	for _, k := range inspect.CommandKinds {
		kinds = append(kinds, string(k))
	}
	c := &cobra.Command{
		Use:   "commands",
		Short: "List the commands in flight, timers among them",
		Long: `List the commands in flight, timers among them, as "ops keys" counts them: what
waits for an operator, what is worked on, what waits for a worker, for the end of
a pause and for its time, each in the order of its time. See stuck and show.

--proof finds what an API key and the tickets requested with it have sent:
  ops commands --status scheduled --proof 4fKq0ZbT9xWc`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.Kind = inspect.CommandKind(status); status != "" && !slices.Contains(kinds, status) {
				return usage.Errorf("--status is one of %s", strings.Join(kinds, ", "))
			}
			header := []string{"status", "workflow", "business key", "transition", "actor", "scope", "key", ">attempt", "due", "with", "lease",
				"stuck", "proof"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) (found []api.CommandStatus, more bool, err error) {
				page, err := e.Admin().Commands(ctx, f)
				for i := range page.Commands {
					found = append(found, api.ListedIn(f.Tenant)(&page.Commands[i]))
				}
				return found, page.More, err
			}, func(s *api.CommandStatus) []string {
				return []string{string(s.Status), s.Workflow, output.OrNone(s.BusinessKey), orUndo(s.Transition, s.Undo), s.Actor, s.Scope, s.Key,
					fmt.Sprint(s.Attempt), output.Moment(s.RunAt), output.OrNone(s.ClaimedBy), output.Moment(s.LockedUntil),
					output.OrNone(s.Stuck), output.OrNone(s.Proof)}
			}, commandPage)
		},
	}
	flags.Tenant(c, &f.Tenant, transitions.DefaultTenant, "whose commands")
	c.Flags().StringVar(&f.Workflow, "workflow", "", "only those of a workflow")
	c.Flags().StringVar(&f.Actor, "actor", "", "only those of an actor")
	c.Flags().StringVar(&f.Proof, "proof", "", "only those whose proof contains this text, such as the id of an API key")
	c.Flags().StringVar(&status, "status", "", "only those that are so: "+strings.Join(kinds, ", "))
	flags.Limit(c, &f.Limit)
	return c
}
