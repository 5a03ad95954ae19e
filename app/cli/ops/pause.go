package ops

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/cli/output"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) pauseCommand() *cobra.Command {
	var a author
	c := o.pauseOrResume("pause", "Let a workflow begin nothing new", "paused",
		func(e *engine.Admin, ctx context.Context, tenant, name string) error {
			return e.PauseWorkflow(ctx, tenant, name, a.by, a.reason)
		})
	c.Long = `Let a tenant's instances of a workflow end what is in flight, and begin nothing
new: commands are refused, timers and scheduled commands wait. A workflow that is
paused stays as it is. See paused and resume.`
	a.flags(c)
	return c
}

func (o *ops) resumeCommand() *cobra.Command {
	return o.pauseOrResume("resume", "End the pause of a workflow", "resumed", (*engine.Admin).ResumeWorkflow)
}

// pauseChange is what was done to a workflow.
type pauseChange struct {
	Tenant   string `json:"tenant"`
	Workflow string `json:"workflow"`
	Done     string `json:"done"`
}

// pauseOrResume is a command that does one of the two, and says so.
func (o *ops) pauseOrResume(
	name, short, done string,
	do func(e *engine.Admin, ctx context.Context, tenant, name string) error,
) *cobra.Command {
	var tenant string
	c := &cobra.Command{
		Use:   name + " WORKFLOW",
		Short: short,
		Args:  flags.Operands("WORKFLOW"),
		RunE: func(c *cobra.Command, args []string) error {
			change := pauseChange{Tenant: tenant, Workflow: args[0], Done: done}
			return o.change(c, change, args[0]+": "+done, func(ctx context.Context, e *engine.Engine) error {
				return do(e.Admin(), ctx, tenant, args[0])
			})
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose instances")
	return c
}

func (o *ops) pausedCommand() *cobra.Command {
	var tenant string
	var instances bool
	var f inspect.PausedFilter
	c := &cobra.Command{
		Use:   "paused",
		Short: "List the workflows, or the instances, that are paused",
		Long: `List the workflows of a tenant that are paused; with --instances the instances that
are paused themselves, by whom, since when and why. With -o json there are both.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.Tenant = tenant
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				workflows, err := e.Admin().PausedWorkflows(ctx, tenant)
				if err != nil {
					return err
				}
				found, more, err := e.Admin().PausedInstances(ctx, f)
				if err != nil {
					return err
				}
				all := api.PausedList{Workflows: workflows, Instances: found}
				whole := func([]inspect.PausedInstance) any { return all }
				if instances {
					header := []string{"since", "workflow", "business key", "instance", "state", "by", "reason"}
					return show(o, c, header, all.Instances, more, pausedInstanceRow, whole)
				}
				header := []string{"since", "workflow", "by", "reason"}
				return show(o, c, header, all.Workflows, more && o.json, pausedRow, func([]inspect.PausedWorkflow) any { return all })
			})
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose instances")
	c.Flags().BoolVar(&instances, "instances", false, "list instances")
	c.Flags().StringVar(&f.Workflow, "workflow", "", "with --instances: only those of a workflow")
	flags.Limit(c, &f.Limit)
	return c
}

func pausedRow(w *inspect.PausedWorkflow) []string {
	return []string{output.Moment(w.At), w.Workflow, w.Actor, output.OrNone(w.Reason)}
}

func pausedInstanceRow(p *inspect.PausedInstance) []string {
	return []string{output.Moment(p.At), p.Workflow, output.OrNone(p.BusinessKey), p.Instance.String(), string(p.State), p.Actor,
		output.OrNone(p.Reason)}
}
