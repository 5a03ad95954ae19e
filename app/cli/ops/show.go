package ops

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func (o *ops) showCommand() *cobra.Command {
	var tenant, name string
	c := &cobra.Command{
		Use:   "show KEY",
		Short: "Show the whole of one instance: state, timeline, what waits, audit chain",
		Long: fmt.Sprintf(`Show the whole of one instance: its state, what is in flight, its timers and
scheduled commands, what waits for an operator, what a later failure would undo,
its last %d transitions, and whether its audit chain is intact.

KEY is its business key, or its id. Where instances of several workflows have
the business key, --workflow says which is meant.`, inspect.MaxTimeline),
		Args: flags.Operands("KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				id, err := named(ctx, e, tenant, name, args[0])
				if err != nil {
					return err
				}
				found, err := e.Read().Case(ctx, tenant, id)
				if err != nil {
					return err
				}
				shown := api.CaseOf(&found)
				return o.print(c, shown, func(w io.Writer) error { return printCase(w, &found, &shown.Instance) })
			})
		},
	}
	flags.Tenant(c, &tenant, transitions.DefaultTenant, "whose instance")
	c.Flags().StringVar(&name, "workflow", "", "the workflow that the business key is of")
	flags.Before(c, func() error { return flags.NotEmpty(c, "workflow") })
	return c
}

// named finds the instance with an id, or a business key. Where both can be meant,
// a workflow that is named says that it is a business key.
func named(ctx context.Context, e *engine.Engine, tenant, name, key string) (uuid.UUID, error) {
	if name != "" {
		inst, err := e.Read().InstanceByKey(ctx, tenant, name, key)
		return inst.ID, err
	}
	if id, err := uuid.Parse(key); err == nil {
		_, err := e.Read().Instance(ctx, tenant, id)
		if workflow.CodeOf(err) != workflow.InstanceNotFound {
			return id, err
		}
	}
	var found []uuid.UUID
	var of []string
	for _, w := range e.Read().Workflows() {
		inst, err := e.Read().InstanceByKey(ctx, tenant, w.Name, key)
		switch {
		case err == nil:
			found, of = append(found, inst.ID), append(of, w.Name)
		case workflow.CodeOf(err) != workflow.InstanceNotFound:
			return uuid.Nil, err
		}
	}
	switch len(found) {
	case 0:
		return uuid.Nil, workflow.Errorf(workflow.InstanceNotFound, "no instance has this id or business key")
	case 1:
		return found[0], nil
	}
	return uuid.Nil, usage.Errorf("instances of %s have this business key: say which with --workflow", strings.Join(of, ", "))
}
