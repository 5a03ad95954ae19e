package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// settleCommand is a command that settles a stuck one.
func (o *ops) settleCommand(action transitions.Action, short string) *cobra.Command {
	var a author
	var result string
	var f inspect.StuckFilter
	c := &cobra.Command{
		Use:   string(action) + " [SCOPE KEY]",
		Short: short,
		Long: short + `.

It is named by its scope and key, or by the instance of which nothing else is
stuck: with --workflow and --business-key, or with --instance.

That is a command of its own, audited with who does it and why. This program
takes part as a node for the moment, which commits it and works on nothing.`,
		RunE: func(c *cobra.Command, args []string) error {
			op := transitions.Operation{Action: action, Reason: a.reason}
			if result != "" {
				valid, err := flags.JSON("--result", []byte(result))
				if err != nil {
					return err
				}
				op.Result = valid
			}
			cmd := transitions.Command{Tenant: f.Tenant, Key: uuid.NewString(), Actor: a.by, Roles: []string{transitions.AnyRole}}
			return o.run(c, func(ctx context.Context, e *engine.Engine) (err error) {
				if op.Target, err = stuckOne(ctx, e, f, args); err != nil {
					return err
				}
				return settle(ctx, e, cmd, op, c.OutOrStdout())
			})
		},
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if f.BusinessKey != "" || c.Flags().Changed("instance") {
			return flags.Operands()(c, args)
		}
		return flags.Operands("SCOPE", "KEY")(c, args)
	}
	flags.Tenant(c, &f.Tenant, transitions.DefaultTenant, "whose command")
	caseFlags(c, &f.Workflow, &f.BusinessKey, &f.Instance, "what is stuck of")
	if action == transitions.Resolve {
		c.Flags().StringVar(&result, "result", "", "what the activity would have returned, as JSON")
	}
	a.flags(c)
	return c
}

// settle starts the engine, and writes the answer to out.
func settle(ctx context.Context, e *engine.Engine, c transitions.Command, op transitions.Operation, out io.Writer) error {
	if err := e.Start(ctx); err != nil {
		return err
	}
	receipt, err := e.Admin().Operate(ctx, c, op)
	if err == nil {
		err = receipt.Err()
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", receipt.Body)
	}
	return err
}

// stuckOne is the command that is named by scope and key, or else the one that is
// stuck of an instance.
func stuckOne(ctx context.Context, e *engine.Engine, f inspect.StuckFilter, args []string) (transitions.CommandRef, error) {
	if len(args) > 0 {
		return transitions.CommandRef{Scope: args[0], Key: args[1]}, nil
	}
	list, more, err := e.Admin().Stuck(ctx, f)
	switch {
	case err != nil:
		return transitions.CommandRef{}, err
	case len(list) == 0:
		return transitions.CommandRef{}, workflow.Errorf(workflow.CommandNotFound, "no command on this instance waits for an operator")
	case len(list) > 1 || more:
		return transitions.CommandRef{}, usage.Errorf(
			"%d commands on this instance wait for an operator: name one by SCOPE and KEY, as stuck lists them", len(list))
	}
	return transitions.CommandRef{Scope: list[0].Scope, Key: list[0].Key}, nil
}
