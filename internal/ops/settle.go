package ops

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/cli"
	"github.com/pawlhq/pawl/transitions"
)

func (o *ops) retryCommand() *cobra.Command {
	return o.settleCommand(transitions.Retry, "Have a stuck command done once more, with all its attempts")
}

func (o *ops) resolveCommand() *cobra.Command {
	return o.settleCommand(transitions.Resolve, "Say of a stuck command that it has happened, with its result")
}

func (o *ops) abandonCommand() *cobra.Command {
	return o.settleCommand(transitions.Abandon, "Give a stuck command up")
}

// settleCommand is a command that settles a stuck one.
func (o *ops) settleCommand(action transitions.Action, short string) *cobra.Command {
	var a author
	var tenant, result string
	c := &cobra.Command{
		Use:   string(action) + " SCOPE KEY",
		Short: short,
		Long: short + `.

That is a command of its own, audited with who does it and why. This program
takes part as a node for the moment, which commits it and works on nothing.`,
		Args: cli.Operands("SCOPE", "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			op := transitions.Operation{Action: action, Reason: a.reason, Target: transitions.Bond{Scope: args[0], Key: args[1]}}
			if result != "" {
				if op.Result = []byte(result); !json.Valid(op.Result) {
					return cli.Usagef("--result is not JSON")
				}
			}
			cmd := transitions.Command{Tenant: tenant, Key: uuid.NewString(), Actor: a.by, Roles: []string{transitions.AnyRole}}
			return o.run(c, func(ctx context.Context, e *engine.Engine) error {
				if err := e.Start(ctx); err != nil {
					return err
				}
				receipt, err := e.Operate(ctx, cmd, op)
				if err == nil {
					err = receipt.Err()
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", receipt.Body)
				return err
			})
		},
	}
	tenantFlag(c, &tenant, transitions.DefaultTenant, "whose command")
	if action == transitions.Resolve {
		c.Flags().StringVar(&result, "result", "", "what the activity would have returned, as JSON")
	}
	a.flags(c)
	return c
}
