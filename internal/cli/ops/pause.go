package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/cli/flags"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) pauseCommand() *cobra.Command {
	var a author
	var tenant string
	c := &cobra.Command{
		Use:   "pause WORKFLOW",
		Short: "Let a workflow begin nothing new",
		Long: `Let a tenant's instances of a workflow end what is in flight, and begin nothing
new: commands are refused, timers and scheduled commands wait. A workflow that is
paused stays as it is. See paused and resume.`,
		Args: flags.Operands("WORKFLOW"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.changePause(c, tenant, args[0], "paused", func(ctx context.Context, e *engine.Engine) error {
				return e.PauseWorkflow(ctx, tenant, args[0], a.by, a.reason)
			})
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose instances")
	a.flags(c)
	return c
}

func (o *ops) resumeCommand() *cobra.Command {
	var tenant string
	c := &cobra.Command{
		Use:   "resume WORKFLOW",
		Short: "End the pause of a workflow",
		Args:  flags.Operands("WORKFLOW"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.changePause(c, tenant, args[0], "resumed", func(ctx context.Context, e *engine.Engine) error {
				return e.ResumeWorkflow(ctx, tenant, args[0])
			})
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose instances")
	return c
}

// pauseChange is what was done to a workflow.
type pauseChange struct {
	Tenant   string `json:"tenant"`
	Workflow string `json:"workflow"`
	Done     string `json:"done"`
}

// changePause pauses a workflow or resumes it, and says so.
func (o *ops) changePause(c *cobra.Command, tenant, name, done string, do func(ctx context.Context, e *engine.Engine) error) error {
	return o.change(c, pauseChange{Tenant: tenant, Workflow: name, Done: done}, name+": "+done, do)
}

func (o *ops) pausedCommand() *cobra.Command {
	var tenant string
	c := &cobra.Command{
		Use:   "paused",
		Short: "List the workflows that are paused",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := []string{"since", "workflow", "by", "reason"}
			return list(o, c, header, func(ctx context.Context, e *engine.Engine) ([]api.PausedWorkflow, bool, error) {
				found, err := e.PausedWorkflows(ctx, tenant)
				return api.PausedOf(found), false, err
			}, func(w *api.PausedWorkflow) []string {
				return []string{moment(w.At), w.Workflow, w.Actor, orNone(w.Reason)}
			})
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose instances")
	return c
}
