package ops

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) stuckCommand() *cobra.Command {
	var f inspect.StuckFilter
	c := &cobra.Command{
		Use:   "stuck",
		Short: "List the commands that wait for an operator",
		Long: `List the commands that wait for an operator, the longest waiting first: what may
have happened outside and nobody can ask about, and what cannot be undone. See
retry, resolve and abandon.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{"since", "workflow", "business key", "transition", "scope", "key", "why", ">failures", "failure"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) (stuck []api.CommandStatus, more bool, err error) {
				found, more, err := e.Admin().Stuck(ctx, f)
				for i := range found {
					stuck = append(stuck, api.ListedIn(f.Tenant)(&found[i]))
				}
				return stuck, more, err
			}, func(s *api.CommandStatus) []string {
				return []string{output.Moment(s.UpdatedAt), s.Workflow, output.OrNone(s.BusinessKey), orUndo(s.Transition, s.Undo), s.Scope, s.Key,
					s.Stuck, fmt.Sprint(s.Failures), output.OrNone(s.Failure)}
			}, commandPage)
		},
	}
	flags.Tenant(c, &f.Tenant, transitions.DefaultTenant, "whose commands")
	caseFlags(c, &f.Workflow, &f.BusinessKey, &f.Instance, "only those of")
	flags.Limit(c, &f.Limit)
	return c
}

func commandPage(list []api.CommandStatus) any { return api.CommandPage{Commands: list} }

// orUndo is a transition as a table shows it, or its undo.
func orUndo(transition string, undo bool) string {
	if undo {
		return "undo of " + transition
	}
	return transition
}
